"""Your own images in one array: npy, npz or HDF5, larger than memory if need be."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from datamodules.array_factors import read_factors
from datamodules.array_files import parts, stored_array
from datamodules.cache import cached, origin_of
from datamodules.factor_table import BINS, FactorTable
from datamodules.factors import FactorKind
from datamodules.sources import MemoryMapped
from datamodules.tabled import TabledDataModule

Layout = Literal["auto", "hwc", "chw"]
CHANNELS = (1, 3)
MEMORY = 1 << 26  # bytes of pictures at a time


class ArrayDataModule(TabledDataModule):
    """Your own images in one array of (N, H, W), (N, H, W, C) or (N, C, H, W): bytes, floats in [0, 1], or booleans.

    Reads the file in parts and without pickles, and caches bytes in `data_dir/.cache`, so floats keep 256 levels.
    Factors are optional: an array `factors` (N, K) of numbers or text in the same file, NaN or empty if unobserved,
    optionally with `factor_names` and `factor_kinds` (K,); or a separate file.

    Args:
        file: Name of the file in `data_dir`: .npy, .npz, .h5 or .hdf5.
        data_dir: Its folder.
        images_key: Name of the array of images in an npz or HDF5 file.
        layout: Channels last ("hwc") or first ("chw"). "auto" looks for an axis of 1 or 3 channels.
        factors_key: Name of the array of factors. Defaults to `factors`, if it exists.
        factors_file: Separate file of factors in `data_dir`, in the order of the images: .npy (N, K), or CSV or Parquet
            with one line per image.
        factor_names: Names of the factors. Defaults to those in the file, else factor0, factor1, …
        factor_kinds: "ordered", "categorical" or "periodic" for each. Defaults to those in the file, else numbers are
            ordered and text is categorical.
        factor_bins: Equal-width bins for factors with more distinct values, for scores that need bins.
        val_size: As in `ImageDataModule`.
        test_size: As in `ImageDataModule`.
        options: As in `ImageDataModule`.
    """

    def __init__(
        self,
        file: str = "images.npz",
        data_dir: str | Path = "data",
        images_key: str = "images",
        layout: Layout = "auto",
        factors_key: str | None = None,
        factors_file: str | None = None,
        factor_names: list[str] | None = None,
        factor_kinds: list[FactorKind] | None = None,
        factor_bins: int = BINS,
        val_size: int | float = 0.1,
        test_size: int | float = 0.1,
        **options: Any,
    ) -> None:
        self.file, self.images_key = Path(data_dir) / file, images_key
        with stored_array(self.file, images_key) as images:
            shape, dtype = images.shape, images.dtype
        self.total = shape[0]
        self.layout, self.image_shape = _shaped(shape, dtype, layout, f"{self.file}: {images_key}")
        own = None if factors_file is None else Path(data_dir) / factors_file
        found = read_factors(self.file, own, factors_key, factor_names, factor_kinds)
        for name, column in found.columns.items():
            if len(column) != self.total:
                raise ValueError(
                    f"{own or self.file}: factor {name} has {len(column)} rows, and there are {self.total} images"
                )
        self.table = FactorTable.of(found.columns, self.total, found.kinds, factor_bins)
        self.factors = self.table.factors
        super().__init__(data_dir=data_dir, val_size=val_size, test_size=test_size, **options)

    def open(self) -> MemoryMapped:
        """The cache of the array."""
        cache = self.data_dir / ".cache" / f"{self.file.name}-{self.layout}"
        origin = origin_of(self.file) | {"key": crc32(self.images_key.encode())}
        return cached(cache, origin, (self.total, *self.image_shape), self.blocks)

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """Read the images in order, as bytes, (n, C, H, W) at a time."""
        channels, height, width = self.image_shape
        with stored_array(self.file, self.images_key) as images:
            for part in parts(images, MEMORY):
                pixels = _in_bytes(part)
                if self.layout == "chw":
                    yield pixels.reshape(-1, channels, height, width)
                else:
                    yield pixels.reshape(-1, height, width, channels).transpose(0, 3, 1, 2)


def _shaped(
    shape: tuple[int, ...], dtype: Any, layout: Layout, name: str
) -> tuple[Literal["hwc", "chw"], tuple[int, int, int]]:
    """The layout of an array of images, and channels, height and width."""
    if dtype != np.uint8 and dtype.kind not in "fb":
        raise ValueError(f"{name} is {dtype}: give bytes (uint8), floats in [0, 1] or booleans")
    if len(shape) == 3:
        return "hwc", (1, shape[1], shape[2])
    if len(shape) != 4:
        raise ValueError(f"{name} has shape {shape}: give (N, H, W), (N, H, W, C) or (N, C, H, W)")
    if layout == "auto":
        last, first = shape[3] in CHANNELS, shape[1] in CHANNELS
        if last == first:
            raise ValueError(f"{name} has shape {shape}, so the channel axis is ambiguous: set layout")
        layout = "hwc" if last else "chw"
    return (layout, (shape[1], shape[2], shape[3])) if layout == "chw" else ("hwc", (shape[3], shape[1], shape[2]))


def _in_bytes(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    if pixels.dtype.kind == "b":
        return np.where(pixels, np.uint8(255), np.uint8(0))
    if pixels.dtype == np.uint8:
        return pixels
    low, high = pixels.min(), pixels.max()
    if not (low >= 0 and high <= 1):  # nor NaN
        raise ValueError(f"floats from {low:g} to {high:g}, not in [0, 1]")
    return np.rint(pixels.astype(np.float32) * 255).astype(np.uint8)
