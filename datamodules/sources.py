"""Sources of images."""

import mmap
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from datamodules.factors import unravel

MAPPED = 32  # pictures read before their pages are given back: the system maps up to 2 MB around each


class ImageSource(Protocol):
    """Images by id."""

    def __len__(self) -> int:
        """Number of images."""

    def images(self, ids: Tensor) -> Tensor:
        """Images by id, uint8 (B, C, H, W), 0 to 255."""


class Renderer(Protocol):
    """Renders the images of a complete grid of factors."""

    @property
    def factor_sizes(self) -> tuple[int, ...]:
        """Number of values of each factor."""

    def draw(self, factors: Tensor) -> Tensor:
        """Images at factor indices: (B, K) to uint8 (B, C, H, W)."""


class Rendered:
    """Images rendered on demand."""

    def __init__(self, renderer: Renderer) -> None:
        self.renderer = renderer

    def __len__(self) -> int:
        """Points of the factor grid."""
        return prod(self.renderer.factor_sizes)

    def images(self, ids: Tensor) -> Tensor:
        """Draw images by id, uint8 (B, C, H, W)."""
        return self.renderer.draw(unravel(ids, self.renderer.factor_sizes))


class Picked:
    """A subset of a source, renumbered.

    Args:
        source: All images.
        ids: Ids of the subset, in order, (N,).
    """

    def __init__(self, source: ImageSource, ids: Tensor) -> None:
        self.source, self.ids = source, ids

    def __len__(self) -> int:
        """Number of images."""
        return len(self.ids)

    def images(self, ids: Tensor) -> Tensor:
        """Images by their new ids, uint8 (B, C, H, W)."""
        return self.source.images(self.ids[ids])


class MemoryMapped:
    """Images in a file of bytes, read on demand.

    Args:
        path: File of uint8 (N, C, H, W) and nothing else.
        shape: N, C, H, W.
    """

    def __init__(self, path: Path, shape: tuple[int, int, int, int]) -> None:
        self.path, self.shape = path, shape
        if path.stat().st_size != prod(shape):
            raise ValueError(f"{path} has {path.stat().st_size} bytes, not the {prod(shape)} of {shape}; delete it")
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._array = np.frombuffer(self._map, np.uint8).reshape(shape)

    def __len__(self) -> int:
        """Images in the file."""
        return self.shape[0]

    def __reduce__(self) -> tuple[Any, ...]:
        """Spawned worker processes map the file themselves."""
        return MemoryMapped, (self.path, self.shape)

    def images(self, ids: Tensor) -> Tensor:
        """Copy images by id, uint8 (B, C, H, W)."""
        batch = np.empty((len(ids), *self.shape[1:]), np.uint8)
        for first in range(0, len(ids), MAPPED):
            rows = slice(first, first + MAPPED)
            batch[rows] = self._array[ids[rows].numpy()]
            # Mapped pages count as resident until they are given back; they stay in the page cache of the system.
            self._map.madvise(mmap.MADV_DONTNEED)
        return torch.from_numpy(batch)
