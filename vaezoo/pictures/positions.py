"""Maps of units and labels over an object's position."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import torch
from lightning.pytorch import Trainer
from torch import Tensor

from vaezoo.models.base import VAE
from vaezoo.pictures.callback import Pictures, caption
from vaezoo.pictures.picture import Picture
from vaezoo.pictures.plots import heat_maps
from vaezoo.types import Batch

SCALE = (-3.0, 3.0)  # Margonis et al., 2020, Fig. 1: the same colours in every map
POINTS, VARIANTS = 32, 25


@runtime_checkable
class DrawsPositions(Protocol):
    """A datamodule with one object that can be anywhere; without positions it gives no batches."""

    @property
    def label_sizes(self) -> Sequence[int]:
        """Number of classes of each one-hot label; empty for other labels."""

    def position_batches(self, points: int, variants: int) -> Iterator[Batch]:
        """Images at points × points positions, row by row, for each of some values of the other factors."""


class SavePositionMaps(Pictures):
    """Draws each latent unit as a heat map over the object's position (Margonis et al., 2020, Fig. 1, 4 and 5).

    Each map averages over the other factors (25 blobs in the paper), on a scale from −3 to 3. `label_map` shows the
    weak-label classes of each position (Fig. 3b).

    Args:
        points: Positions along each side.
        variants: Largest number of values of the other factors to average over.
    """

    def __init__(self, points: int = POINTS, variants: int = VARIANTS) -> None:
        super().__init__(images=1)
        self.points, self.variants = points, variants

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> Mapping[str, Picture]:
        """One picture of all units, and one of the labels; none for data without positions."""
        data = getattr(trainer, "datamodule", None)
        if not isinstance(data, DrawsPositions):
            return {}
        return position_pictures(model, data, self.points, self.variants, caption(trainer, model))


def position_pictures(model: VAE, data: DrawsPositions, points: int, variants: int, title: str) -> dict[str, Picture]:
    """`position_maps`, and `label_map` where labels are one-hot; empty for data without positions."""
    first = next(data.position_batches(points, 1), None)
    if first is None:
        return {}
    groups = [(name, group.size) for name, group in model.latents.items() if group.decoded]
    names = [f"{name}{unit}" for name, size in groups for unit in range(size)]
    maps = position_maps(model, data.position_batches(points, variants), points)
    pictures: dict[str, Picture] = {
        "position_maps": heat_maps(maps, names, f"{title} · mean codes over positions", SCALE)
    }
    if data.label_sizes:
        classes = label_maps(first.y, data.label_sizes, points)
        names = [f"label {k}: {size} classes" for k, size in enumerate(data.label_sizes)]
        pictures["label_map"] = heat_maps(classes, names, "classes over positions", (0, max(data.label_sizes) - 1))
    return pictures


def position_maps(model: VAE, places: Iterable[Batch], points: int) -> Tensor:
    """Mean code at each position, (D, points, points)."""
    codes = [model.represent(batch.x.to(model.device), batch.y.to(model.device)).cpu() for batch in places]
    return torch.stack(codes).mean(0).T.reshape(-1, points, points)


def label_maps(labels: Tensor, sizes: Sequence[int], points: int) -> Tensor:
    """Class of each one-hot label at each position, (labels, points, points)."""
    return torch.stack([part.argmax(1) for part in labels.split(list(sizes), 1)]).reshape(-1, points, points)
