"""Training steps as compiled code."""

import os
import shutil
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from vaezoo.models.base import VAE


class Compile(Callback):
    """Compiles the way from a batch to its loss, and the way back, with torch.compile: one graph, no breaks.

    Methods of the model in training are replaced and nothing else: parameters, their names and checkpoints are those
    of a run without this callback, and either continues the other. The noise is the same as well, so that losses
    agree up to rounding. Evaluation is not compiled, as its last batch has a size of its own.
    """

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Replace the model's methods; they are compiled at the first batch."""
        if stage != "fit":
            return
        if not isinstance(pl_module, VAE):
            raise TypeError(f"Compile needs a vaezoo VAE, not a {type(pl_module).__name__}")
        if trainer.strategy.root_device.type == "cpu":
            _check_compiler()
        for name in pl_module.hot_path:
            # Bound anew, not a closure over the model: a copy of the model then calls itself.
            setattr(pl_module, name, MethodType(_in_training(getattr(type(pl_module), name)), pl_module))

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Give the model its own methods back."""
        if stage == "fit" and isinstance(pl_module, VAE):
            for name in pl_module.hot_path:
                vars(pl_module).pop(name, None)


def _in_training(method: Callable[..., Any]) -> Callable[..., Any]:
    # Noise is small beside images: drawing it as eager PyTorch does costs nothing.
    compiled = torch.compile(method, fullgraph=True, options={"fallback_random": True})

    def chosen(model: VAE, *args: Any) -> Any:
        return compiled(model, *args) if model.training else method(model, *args)

    return chosen


def _check_compiler() -> None:
    default = {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    name = os.environ.get("CXX") or default
    if shutil.which(name) is None:
        raise RuntimeError(
            f"compiling needs a C++ compiler and {name!r} is not on the PATH: install one, name another in the "
            "environment variable CXX, or train without the callback Compile"
        )
