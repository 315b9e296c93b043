"""Pictures of what single units of the code stand for: nats, labels, positions."""

import math
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor

from vaezoo.models import LaRVAE
from vaezoo.models.base import VAE
from vaezoo.pictures.callback import Pictures, caption
from vaezoo.pictures.grids import grid
from vaezoo.pictures.plots import curves, heat_maps
from vaezoo.regularizers import Capacity
from vaezoo.types import Batch


@runtime_checkable
class _DrawsLabels(Protocol):
    """A datamodule that can show the image of any labels."""

    @property
    def labelled_names(self) -> tuple[str, ...]: ...

    def images_of(self, labels: Tensor) -> Tensor | None: ...


@runtime_checkable
class _DrawsPositions(Protocol):
    """A datamodule with one object that can be anywhere."""

    def position_batch(self, points: int) -> Batch | None: ...


class SaveUnitNats(Pictures):
    """Draws how the KL of each unit grew, beside the capacity of its latent group (Dupont, 2018, Fig. 7).

    Args:
        images: Images over which the KL is averaged.
        every_n_steps: Training batches from one measurement to the next.
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

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> Mapping[str, Tensor]:
        """One picture a latent group, from all that was measured."""
        self._measure(model, batch)
        return {
            f"nats_{name}": self._curves(name, torch.tensor(past).T, f"{caption(trainer, model)} · KL of {name}")
            for name, past in self._history.items()
        }

    def _measure(self, model: VAE, batch: Batch) -> None:
        for name, nats in model.unit_nats(batch.x, batch.y).items():
            past = self._history.setdefault(name, [])
            if not past or past[-1][0] != float(model.step):
                past.append([float(model.step), self._capacity(model, name), *nats.tolist()])

    @staticmethod
    def _curves(name: str, table: Tensor, title: str) -> Tensor:
        lines = {f"{name}{unit}": (table[0], values) for unit, values in enumerate(table[2:])}
        if len(lines) > 1:
            lines[f"all of {name}"] = (table[0], table[2:].sum(0))
        target = {} if table[1].isnan().all() else {"capacity": (table[0], table[1])}
        return curves(lines, title, "step", "nats", target)

    def state_dict(self) -> dict[str, Any]:
        """What was measured, so that a resumed run draws all of it."""
        return {"history": self._history}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what was measured."""
        self._history = state_dict["history"]

    @staticmethod
    def _capacity(model: VAE, latent: str) -> float:
        for term in model.regularizers.values():
            if isinstance(term, Capacity) and term.latents == (latent,):
                classes = model.latents[latent].classes  # no group carries more than it has classes for
                return min(float(term.capacity(model.step)), sum(map(math.log, classes)) if classes else math.inf)
        return float("nan")


class SaveLabelTraversals(Pictures):
    """Draws images generated from labels, one label after the other going from 0 to 1 (Nie et al., 2020, Fig. 4).

    Each label has a row that starts with the reference image. Where the data can draw any labels, the true images stand
    above in a row of their own.

    Args:
        steps: Values of each label.
    """

    def __init__(self, steps: int = 8) -> None:
        super().__init__(images=1)
        self.steps = steps

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> Mapping[str, Tensor]:
        """One picture, `label_traversals`; none for a model without labels or before a labelled image was seen."""
        if not isinstance(model, LaRVAE) or not batch.labelled.all() or bool(batch.y.isnan().any()):
            return {}
        labels = model.labels_walk(batch.y, self.steps).flatten(0, 2)  # (K · S, K)
        data = getattr(trainer, "datamodule", None)
        truth = data.images_of(labels.cpu()) if isinstance(data, _DrawsLabels) else None
        names = data.labelled_names if isinstance(data, _DrawsLabels) else [f"y{k}" for k in range(model.label_dim)]
        rows, titles = [], []
        for k, made in enumerate(model.generate(labels).split(self.steps)):
            if truth is not None:
                rows.append(torch.cat([batch.x[:1].cpu(), truth[k * self.steps : (k + 1) * self.steps]]))
                titles.append(f"{names[k]}: true")
            rows.append(torch.cat([batch.x[:1], made]))
            titles.append(f"{names[k]}: generated")
        columns = ["image", *(f"{value:.2f}" for value in torch.linspace(0, 1, self.steps).tolist())]
        title = f"{caption(trainer, model)} · labels from 0 to 1"
        return {"label_traversals": grid([row.cpu() for row in rows], titles, columns, title)}


class SavePositionMaps(Pictures):
    """Draws each latent unit as a heat map over the object's position (Margonis et al., 2020, Fig. 1, 4 and 5).

    Args:
        points: Positions along each side.
    """

    def __init__(self, points: int = 32) -> None:
        super().__init__(images=1)
        self.points = points

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> Mapping[str, Tensor]:
        """One picture of all units; none for data without positions."""
        data = getattr(trainer, "datamodule", None)
        places = data.position_batch(self.points) if isinstance(data, _DrawsPositions) else None
        if places is None:
            return {}
        codes = model.represent(places.x.to(batch.x), places.y.to(batch.y))
        maps = codes.T.unflatten(1, (self.points, self.points))
        title = f"{caption(trainer, model)} · codes over positions"
        return {"position_maps": heat_maps(maps, [f"z{unit}" for unit in range(len(maps))], title)}
