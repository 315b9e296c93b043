"""Complete grids of factors: the base class, and datasets from one official file or a renderer."""

from collections.abc import Iterator
from math import prod
from statistics import fmean
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
from lightning.pytorch.utilities import rank_zero_warn
from numpy.typing import NDArray
from torch import Tensor

from datamodules.base import ImageDataModule
from datamodules.cache import cached, origin_of
from datamodules.download import download
from datamodules.factors import ravel, unravel
from datamodules.sources import ImageSource, Rendered, Renderer
from vaezoo.runs.files import require_own_file
from vaezoo.types import Batch

FEW = 16  # pictures whose mean difference says whether they are the right ones


class GridDataModule(ImageDataModule):
    """A dataset with every combination of its factors; the last factor changes fastest."""

    position_factors: tuple[str, str] | None = None
    """Factors that move an object down and to the right, where there are such."""

    def factors_of(self, ids: Tensor) -> Tensor:
        """Factor indices of images by id, (B, K)."""
        return unravel(ids, self.factor_sizes)

    def images_at(self, factors: Tensor) -> Tensor:
        """Images at factor indices (B, K), float in [0, 1] on the host, (B, C, H, W)."""
        return self.pictures.images(ravel(factors, self.factor_sizes).cpu()).float() / 255

    def images_of(self, labels: Tensor) -> Tensor | None:
        """Images whose factors are nearest to labels (B, K), in [0, 1], (B, C, H, W); None for one-hot labels.

        Factors without a label take their first value.
        """
        if self.label_form == "onehot":
            return None
        factors = torch.zeros(len(labels), len(self.factors), dtype=torch.long)
        for k, factor in enumerate(self.labelled_factors):
            index = labels[:, k] * (factor.size - 1 if self.label_form == "rank" else 1)
            factors[:, self.factor_names.index(factor.name)] = index.round().long().clamp(0, factor.size - 1)
        return self.images_at(factors)

    def position_batches(self, points: int, variants: int = 25) -> Iterator[Batch]:
        """Images of one object at points × points positions, row by row, with labels; none without positions.

        Args:
            points: Positions along each side.
            variants: Largest number of batches, each with different values of the other factors, evenly spread.
        """
        if self.position_factors is None:
            return
        columns = [self.factor_names.index(name) for name in self.position_factors]
        others = [column for column in range(len(self.factors)) if column not in columns]
        places = [torch.linspace(0, self.factor_sizes[column] - 1, points).round().long() for column in columns]
        sizes = tuple(self.factor_sizes[column] for column in others)
        chosen = torch.linspace(0, prod(sizes) - 1, min(variants, prod(sizes)), dtype=torch.float64).round().long()
        for variant in unravel(chosen, sizes):
            factors = torch.zeros(points * points, len(self.factors), dtype=torch.long)
            factors[:, columns], factors[:, others] = torch.cartesian_prod(*places), variant
            labels = self.labels_of(ravel(factors, self.factor_sizes))
            yield Batch(self.images_at(factors), labels, torch.ones(len(labels), dtype=torch.bool))


class OfficialGrid(GridDataModule):
    """A grid in one official file, with a renderer that draws the same images.

    Args:
        source: "file" reads the official file in `data_dir`; "render" draws the images; "auto" draws them, with a
            warning, if the file is missing.
        download: Download the file if it is missing.
        options: As in `ImageDataModule`.
    """

    file_name: ClassVar[str]
    url: ClassVar[str]
    md5: ClassVar[str]
    renderer: ClassVar[type[Renderer]]
    drawing_error: ClassVar[float]
    """Mean absolute difference, of 255, that official pictures may have from drawn ones."""

    def __init__(
        self, source: Literal["auto", "file", "render"] = "auto", download: bool = False, **options: Any
    ) -> None:
        super().__init__(**options)
        self.file = self.data_dir / self.file_name
        self.download = download
        if source == "auto":
            source = "file" if download or self.file.exists() else "render"
            if source == "render":
                rank_zero_warn(
                    f"{self.file} is not there: its pictures are drawn by {self.renderer.__name__} instead; put the "
                    "file there or set download=True for the official ones, or source=render to draw without a warning"
                )
        self.source = source

    def open(self) -> ImageSource:
        """The renderer, or the cache of the official file."""
        if self.source == "render":
            return Rendered(self.renderer())
        if self.download and not self.file.exists():
            download(self.url, self.file, self.md5)
        if not self.file.exists():
            raise FileNotFoundError(
                f"{self.file} is not there: fetch it from {self.url} or set download=True, or draw its pictures with "
                "source=render"
            )
        require_own_file(self.file, self.data_dir)
        shape = (prod(self.factor_sizes), *self.image_shape)
        return cached(self.data_dir / ".cache" / self.file.stem, origin_of(self.file), shape, self._compared)

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """Read the official file, checking its layout: all pictures in order, (n, C, H, W) at a time."""
        raise NotImplementedError

    def _compared(self) -> Iterator[NDArray[np.uint8]]:
        """The blocks, of which some pictures are compared with drawn ones: labels do not show their order."""
        sizes: tuple[int, ...] = cast(Any, self.renderer).factor_sizes
        drawn = Rendered(self.renderer()) if prod(sizes) == prod(self.factor_sizes) else None  # of another grid
        errors: list[float] = []
        first = 0
        for block in self.blocks():
            if drawn is not None:
                place = 7 * len(errors) % len(block)  # not the same factors each time
                (picture,) = drawn.images(torch.tensor([first + place])).numpy()
                errors.append(float(np.abs(block[place].astype(np.int16) - picture).mean()))
            if len(errors) >= FEW and fmean(errors) > self.drawing_error:
                raise ValueError(
                    f"{self.file} is not the official file (its pictures are others, or in another order): delete it "
                    "and fetch it again"
                )
            yield block
            first += len(block)


def check_array(name: str, shape: tuple[int, ...], dtype: Any, expected: tuple[int, ...], kind: type) -> None:
    """Raise ValueError unless an array has the shape and type of its dataset's layout."""
    if shape != expected or dtype != kind:
        raise ValueError(f"{name} is {dtype} {shape}, not {np.dtype(kind)} {expected}")


def check_order(labels: NDArray[Any], sizes: tuple[int, ...]) -> None:
    """Raise ValueError unless labels number a grid with the last factor changing fastest.

    Args:
        labels: Values of the factors, a row a picture, (N, K).
        sizes: Number of values of each factor.
    """
    grid = labels.reshape(*sizes, len(sizes))
    for factor, size in enumerate(sizes):
        values = np.moveaxis(grid[..., factor], factor, 0).reshape(size, -1)  # a row for each index of the factor
        alike, apart = np.ptp(values, axis=1) <= 1e-6, np.diff(np.sort(values[:, 0])) >= 1e-6  # of NaN, neither
        if not (alike.all() and apart.all()):
            raise ValueError(f"column {factor} of the labels does not follow the official order of the pictures")
