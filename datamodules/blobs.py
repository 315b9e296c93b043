"""Blobs: one blurred disk on a canvas, with weak labels of its position."""

from typing import Any

import torch
from torch import Tensor

from datamodules.factors import Factor, ravel
from datamodules.grids import GridDataModule
from datamodules.renderers.blobs import SIZE, BlobsRenderer
from datamodules.sources import Rendered
from datamodules.weak_labels import memberships, polar


class BlobsDataModule(GridDataModule):
    """Blobs of WeLa-VAE (Margonis et al., 2020, Section 4.1): 4096 positions × 25 blobs, 64×64×1.

    Labels are weak labels, not factors: the sector and the ring of the blob, seen from the top left corner, as
    concatenated one-hot vectors. All images are labelled unless you set `labels`.

    Args:
        bins: Number of sectors and of rings, the p of the paper, 2 to 8.
        jitter: Largest relative change of a blob's radius. At 0 all blobs at a position are identical, as in the
            paper's generator.
        samples: Blobs at each position.
        labels: As in `ImageDataModule`.
        labelled_batch_size: As in `ImageDataModule`. By default, images of the stream keep their own labels.
        options: As in `ImageDataModule`.
    """

    image_shape = BlobsRenderer.image_shape
    source = "render"
    position_factors = ("row", "column")

    def __init__(
        self,
        bins: int = 2,
        jitter: float = 0.0,
        samples: int = 25,
        labels: int | float | None = 1.0,
        labelled_batch_size: int | None = 0,
        **options: Any,
    ) -> None:
        self.bins = bins
        self.renderer = BlobsRenderer(jitter=jitter, samples=samples)
        self.factors = (Factor("row", SIZE), Factor("column", SIZE), Factor("radius", samples))
        super().__init__(
            labels=labels,
            labelled_batch_size=labelled_batch_size,
            labelled_factors=None,
            label_form="onehot",
            **options,
        )

    @property
    def label_sizes(self) -> tuple[int, ...]:
        """Sectors, then rings."""
        return self.bins, self.bins

    @property
    def labelled_names(self) -> tuple[str, ...]:
        """What sectors and rings divide."""
        return "angle", "distance"

    def open(self) -> Rendered:
        """The renderer."""
        return Rendered(self.renderer)

    def labels_of(self, ids: Tensor) -> Tensor:
        """Sector and ring of images by id, one-hot each, (B, 2 · bins)."""
        rows, columns, _ = self.factors_of(ids).unbind(1)
        return torch.cat(memberships(*polar(rows, columns), self.bins), dim=1)

    def cells_of(self, ids: Tensor) -> Tensor:
        """Cells over which the labelled set is balanced: pairs of a sector and a ring, (B,)."""
        sector, ring = self.labels_of(ids).chunk(2, dim=1)
        return ravel(torch.stack([sector.argmax(1), ring.argmax(1)], dim=1), (self.bins, self.bins))
