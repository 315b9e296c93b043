"""Training steps as compiled code."""

import os
import shutil
import sys
from collections.abc import Callable
from types import MethodType
from typing import Any, Literal

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_warn

from vaezoo.models.base import VAE

When = Literal["always", "auto"]
Mode = Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]

LONG_RUN = 10_000
"""Batches from which a compilation, which takes a minute or two, pays for itself."""


class Compile(Callback):
    """Compiles forward and backward pass of a training step with torch.compile: one graph, no breaks.

    Only methods of the model are replaced, while it trains. Parameters, their names and checkpoints stay the same, so
    an eager run can resume a compiled one, and vice versa. The noise is the same too: losses agree up to rounding.
    Evaluation is not compiled, as the size of its last batch differs.

    Args:
        when: "always", or "auto": if there is a compiler and the run has at least 10,000 batches left. Checkpoints
            store the automatic choice, so a resumed run repeats it. If compiling fails, "auto" trains without it.
        mode: The mode of `torch.compile`. "reduce-overhead" records CUDA graphs.
    """

    def __init__(self, when: When = "always", mode: Mode = "default") -> None:
        self.when, self.mode = when, mode
        self.compiled: bool | None = True if when == "always" else None
        """Whether steps are compiled; None until an automatic choice is made."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Check that it can be done; steps are compiled at the first batch."""
        if stage != "fit":
            return
        if not isinstance(pl_module, VAE):
            raise TypeError(f"Compile needs a vaezoo VAE, not a {type(pl_module).__name__}")
        if self.when == "always":
            if missing := missing_compiler(trainer.strategy.root_device.type):
                raise RuntimeError(f"{missing}, or train with --compile false")
            self._replace_methods(pl_module)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Choose, where the choice is automatic: by now the checkpoint is loaded."""
        if self.when == "always" or not isinstance(pl_module, VAE):
            return
        missing = missing_compiler(trainer.strategy.root_device.type)
        if self.compiled is None:  # a run that goes on without a word on it has not been compiled
            self.compiled = not missing and not pl_module.step and planned_batches(trainer) >= LONG_RUN
        elif self.compiled and missing:
            self.compiled = False
            rank_zero_warn(f"the run was compiled so far and continues without, as {missing}")
        if self.compiled:
            self._replace_methods(pl_module)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Tell CUDA graphs that the results of the last step were read."""
        if self.compiled and self.mode in ("reduce-overhead", "max-autotune"):
            torch.compiler.cudagraph_mark_step_begin()

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Give the model its own methods back."""
        if stage == "fit" and isinstance(pl_module, VAE):
            for name in pl_module.hot_path:
                vars(pl_module).pop(name, None)

    def state_dict(self) -> dict[str, Any]:
        """The choice, for a run that goes on."""
        return {} if self.when == "always" else {"compiled": self.compiled}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Choose as before."""
        if self.when == "auto":
            self.compiled = bool(state_dict.get("compiled"))

    def _replace_methods(self, model: VAE) -> None:
        for name in model.hot_path:
            # Bound anew, not a closure over the model: a copy of the model then calls itself.
            setattr(model, name, MethodType(self._in_training(getattr(type(model), name)), model))

    def _in_training(self, method: Callable[..., Any]) -> Callable[..., Any]:
        from torch._dynamo.exc import TorchDynamoException  # takes a second: for runs that compile
        from torch._inductor import list_mode_options

        # Noise is small beside images: drawing it as eager PyTorch does costs nothing.
        options = {**list_mode_options(self.mode), "fallback_random": True}
        compiled = torch.compile(method, fullgraph=True, options=options)

        def chosen(model: VAE, *args: Any) -> Any:
            if not (model.training and self.compiled):
                return method(model, *args)
            try:
                return compiled(model, *args)
            except TorchDynamoException as error:
                if self.when == "always":
                    raise
                self.compiled = False
                rank_zero_warn(f"compiling failed, training continues without it: {_first_line(error)}")
                return method(model, *args)

        return chosen


def missing_compiler(device: str) -> str:
    """What compiling for a device needs and is not there, with the remedy; nothing where all is well."""
    if device != "cpu":
        return ""  # Triton comes with PyTorch
    default = {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    name = os.environ.get("CXX") or default
    if shutil.which(name):
        return ""
    return (
        f"compiling needs a C++ compiler and {name!r} is not on the PATH: install one, name another in the environment "
        "variable CXX"
    )


def planned_batches(trainer: Trainer) -> float:
    """Training batches of a run, as far as its limits tell."""
    return trainer.estimated_stepping_batches * trainer.accumulate_grad_batches


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
