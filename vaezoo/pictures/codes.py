"""Information in each unit of the code."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor

from vaezoo.models.base import VAE
from vaezoo.pictures.callback import Pictures, caption
from vaezoo.pictures.picture import Picture
from vaezoo.pictures.plots import curves
from vaezoo.regularizers import Capacity
from vaezoo.types import Batch


class SaveUnitNats(Pictures):
    """Draws how the KL of each unit grew, beside the capacity of its latent group (Dupont, 2018, Fig. 7).

    Args:
        images: Number of images to average the KL over.
        every_n_steps: Training batches between measurements.
    """

    def __init__(self, images: int = 64, every_n_steps: int = 500) -> None:
        super().__init__(images)
        if every_n_steps < 1:
            raise ValueError(f"every_n_steps must be at least 1, not {every_n_steps}")
        self.every_n_steps = every_n_steps
        self._history: dict[str, list[list[float]]] = {}

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Batch, batch_idx: int
    ) -> None:
        """Measure, now and then."""
        if self._batch is not None and isinstance(pl_module, VAE) and trainer.global_step % self.every_n_steps == 0:
            self._measure(pl_module, self._batch)

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> Mapping[str, Picture]:
        """One picture a latent group, from all that was measured."""
        self._measure(model, batch)
        return self.pictures(caption(trainer, model))

    def pictures(self, title: str) -> dict[str, Picture]:
        """One picture a latent group, from all that was measured."""
        return {
            f"nats_{name}": self._curves(name, torch.tensor(past).T, f"{title} · KL of {name}")
            for name, past in self._history.items()
        }

    def _measure(self, model: VAE, batch: Batch) -> None:
        for name, nats in model.unit_nats(batch.x, batch.y).items():
            past = self._history.setdefault(name, [])
            if not past or past[-1][0] != float(model.step):
                past.append([float(model.step), self._capacity(model, name), *nats.tolist()])

    @staticmethod
    def _curves(name: str, table: Tensor, title: str) -> Picture:
        lines = {f"{name}{unit}": (table[0], values) for unit, values in enumerate(table[2:])}
        if len(lines) > 1:
            lines[f"all of {name}"] = (table[0], table[2:].sum(0))
        target = {} if table[1].isnan().all() else {"capacity": (table[0], table[1])}
        return curves(lines, title, "step", "nats", target)

    def state_dict(self) -> dict[str, Any]:
        """All measurements, so a resumed run draws them too."""
        return {"history": self._history}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the measurements."""
        self._history = state_dict["history"]

    @staticmethod
    def _capacity(model: VAE, latent: str) -> float:
        for term in model.regularizers.values():
            if isinstance(term, Capacity) and term.latents == (latent,):
                classes = model.latents[latent].classes  # no group carries more than it has classes for
                return min(float(term.capacity(model.step)), sum(map(math.log, classes)) if classes else math.inf)
        return float("nan")
