"""Complete grids of factors: from their official file, or drawn where it is not there."""

from collections.abc import Iterator
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np
from lightning.pytorch.utilities import rank_zero_warn
from numpy.typing import NDArray

from datamodules.base import GridDataModule
from datamodules.cache import cached, origin_of
from datamodules.download import download
from datamodules.sources import ImageSource, Rendered, Renderer


class OfficialGrid(GridDataModule):
    """A grid that comes as one file, with a renderer that draws the same pictures.

    Args:
        source: "file" reads the official file in `data_dir`; "render" draws the pictures; "auto" draws them where the
            file is not there, with a warning.
        download: Fetch the file where it is missing.
        options: As in `ImageDataModule`.
    """

    file_name: ClassVar[str]
    url: ClassVar[str]
    md5: ClassVar[str]
    renderer: ClassVar[type[Renderer]]

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
        shape = (prod(self.factor_sizes), *self.image_shape)
        return cached(self.data_dir / ".cache" / self.file.stem, origin_of(self.file), shape, self.blocks)

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """Read the official file, checking its layout: all pictures in order, (n, C, H, W) at a time."""
        raise NotImplementedError


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
        if np.ptp(values, axis=1).max() > 1e-6 or (np.diff(np.sort(values[:, 0])) < 1e-6).any():
            raise ValueError(f"column {factor} of the labels does not follow the official order of the pictures")
