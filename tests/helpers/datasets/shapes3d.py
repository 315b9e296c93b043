"""A small 3DShapes in the official layout."""

from itertools import product
from math import prod
from pathlib import Path
from typing import Any, cast

import h5py
import numpy as np

from datamodules.factors import Factor
from datamodules.shapes3d import Shapes3DDataModule

VALUES = ([0.0, 0.1], [0.0, 0.1], [0.0, 0.1, 0.2], [0.75, 1.25], [0.0, 1.0], [-30.0, 0.0, 30.0])
SIZES = tuple(map(len, VALUES))
IMAGES = np.random.default_rng(0).integers(0, 256, (prod(SIZES), 64, 64, 3), dtype=np.uint8)
LABELS = np.array(list(product(*VALUES)))


class Small(Shapes3DDataModule):
    """The same file format over a smaller grid."""

    factors = cast(
        Any, tuple(Factor(factor.name, size) for factor, size in zip(Shapes3DDataModule.factors, SIZES, strict=True))
    )


def write(folder: Path, images: Any = IMAGES, labels: Any = LABELS) -> Path:
    """`images` and `labels` in gzip chunks."""
    path = folder / "3dshapes.h5"
    with h5py.File(path, "w") as file:
        for name, data in (("images", images), ("labels", labels)):
            if data is not None:
                file.create_dataset(name, data=data, compression="gzip")
    return path
