"""A small MPI3D in the official layout."""

from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np

from datamodules import MPI3DDataModule
from datamodules.factors import Factor

SIZES = (3, 2, 2, 1, 1, 2, 2)
TOTAL = prod(SIZES)
PIXELS = np.random.default_rng(0).integers(0, 256, (TOTAL, 64, 64, 3), dtype=np.uint8)


class Small(MPI3DDataModule):
    """The same file over a smaller grid."""

    factors = cast(
        Any, tuple(Factor(factor.name, size) for factor, size in zip(MPI3DDataModule.factors, SIZES, strict=True))
    )


def write(folder: Path, name: str = "mpi3d_toy.npz", pixels: Any = PIXELS) -> Path:
    np.savez_compressed(folder / name, images=pixels)
    return folder / name
