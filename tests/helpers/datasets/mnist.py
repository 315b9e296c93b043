"""MNIST's IDX files."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor


def write(folder: Path, prefix: str, pictures: Tensor, classes: Tensor) -> None:
    """IDX files: a magic number that ends in the number of dimensions, the sizes, the bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, array in (("images-idx3", pictures), ("labels-idx1", classes)):
        header = np.array([0x800 + array.ndim, *array.shape], dtype=">i4").tobytes()
        (folder / f"{prefix}-{kind}-ubyte").write_bytes(header + array.to(torch.uint8).numpy().tobytes())


def pictures(count: int, seed: int) -> Tensor:
    return torch.randint(0, 256, (count, 28, 28), generator=torch.Generator().manual_seed(seed))
