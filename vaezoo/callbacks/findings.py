"""What is known of an optimizer step that is not finite: which terms or gradients, when, and in which images."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
import torch.distributed as dist
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor, nn

from vaezoo.runs.folder import RunFolder

_SHOWN = 4  # names or ids in a message


@runtime_checkable
class KnowsIds(Protocol):
    """A training loader that can say which images a batch holds."""

    @property
    def place(self) -> tuple[int, int]:
        """Epoch and number of the batch that was handed out last."""

    def batch_ids(self, epoch: int, batch: int) -> Tensor:
        """Ids of the images of a batch on this rank, (B,)."""


@dataclass(frozen=True)
class Loss:
    """What is known of a batch before its gradients."""

    step: int
    epoch: int
    place: tuple[int, int] | None
    value: Tensor
    terms: Mapping[str, Tensor]

    def ids(self, trainer: Trainer) -> list[int]:
        """Images of the batch on this rank; none where the loader does not tell."""
        loader = trainer.train_dataloader
        return loader.batch_ids(*self.place).tolist() if self.place and isinstance(loader, KnowsIds) else []


@dataclass(frozen=True)
class Update:
    """Losses of an optimizer step, and the norms of its gradients."""

    losses: list[Loss]
    parameters: list[nn.Parameter]
    norms: Tensor

    def found(self, trainer: Trainer, model: LightningModule) -> "Found":
        """What is not finite here: terms of a loss or, where the losses of this rank are finite, gradients."""
        for loss in self.losses:
            if not loss.value.isfinite():
                names = [name for name, value in loss.terms.items() if not value.isfinite()]
                return Found(names or ["the loss"], loss.step, loss.epoch, trainer.global_rank, loss.ids(trainer), True)
        name_of = {id(p): name for name, p in model.named_parameters()}
        bad = [name_of[id(p)] for p, norm in zip(self.parameters, self.norms, strict=True) if not norm.isfinite()]
        ids = [i for loss in self.losses for i in loss.ids(trainer)]
        last = self.losses[-1]
        return Found([f"gradient of {name}" for name in bad], last.step, last.epoch, trainer.global_rank, ids, False)


@dataclass(frozen=True)
class Found:
    """What is not finite, where, and in which images."""

    names: list[str]
    step: int
    epoch: int
    rank: int
    ids: list[int]
    in_loss: bool

    def message(self, trainer: Trainer) -> str:
        """One line; all ids go into a file."""
        file = RunFolder(Path(trainer.log_dir or ".")).nonfinite  # a collective call: on every rank
        if trainer.is_global_zero:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a") as lines:
                lines.write(json.dumps(asdict(self)) + "\n")
        images = f"{_some(self.ids)} ({len(self.ids)} ids in {file})" if self.ids else "not known"
        return f"not finite at step {self.step}, epoch {self.epoch}: {_some(self.names)}; images: {images}"


def agree(found: Found) -> Found:
    """What the first rank found whose loss is not finite; the gradients of that rank reach all others."""
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        everyones: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(everyones, found)
        found = next((other for other in everyones if other.in_loss), everyones[0])
    return found


def norms(tensors: list[Tensor]) -> Tensor:
    """Norm of each tensor, (N,); a private name of torch, as the public functions give one norm of all or are slow."""
    return torch.stack(torch._foreach_norm(tensors))


def _some(values: Sequence[object]) -> str:
    return ", ".join(map(str, values[:_SHOWN])) + (", …" if values[_SHOWN:] else "")
