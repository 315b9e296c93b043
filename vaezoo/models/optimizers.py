"""The optimizer of a model: a callable in memory, plain data in a checkpoint."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch.optim import Optimizer

from vaezoo.models.lightning_private import has_trainer

OptimizerCallable = Callable[[Iterable[Any]], Optimizer]
"""From parameters, or groups of them, to their optimizer: the type that Lightning's command line knows by this name."""


def as_callable(optimizer: OptimizerCallable | Mapping[str, Any]) -> OptimizerCallable:
    """The callable itself, or the one rebuilt from the plain data of `vaezoo.specs.plain`.

    A checkpoint can only name optimizers of `torch.optim`; nothing is imported for it.
    """
    if not isinstance(optimizer, Mapping):
        return optimizer
    package, _, name = str(optimizer.get("class_path")).rpartition(".")
    found = vars(torch.optim).get(name) if package in ("", "torch.optim") else None
    if not (isinstance(found, type) and issubclass(found, Optimizer)):
        raise ValueError(
            f"optimizer {optimizer.get('class_path')!r} is none of torch.optim: name one of its classes, say Adagrad"
        )
    return partial(found, **(optimizer.get("init_args") or {}))


def fused(model: LightningModule) -> bool | None:
    """Whether to use fused Adam: on the CPU, unless that would keep Lightning from clipping gradients.

    Fused, the update of a dense network takes an eighth of the time, a fifth of the step. Elsewhere PyTorch decides. In
    mixed precision Lightning refuses to clip gradients that a fused optimizer may have to unscale.
    """
    clips = has_trainer(model) and model.trainer.gradient_clip_val and "mixed" in str(model.trainer.precision)
    return True if model.device.type == "cpu" and not clips else None
