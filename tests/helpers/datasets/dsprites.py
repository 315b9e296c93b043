"""A small dSprites in the official layout."""

from itertools import product
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np

from datamodules.dsprites import DSpritesDataModule
from datamodules.factors import Factor

NAME = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
SIZES = (3, 2, 4, 2, 3)
IMAGES = np.random.default_rng(0).integers(0, 2, (prod(SIZES), 64, 64), dtype=np.uint8)
CLASSES = np.array(list(product([0], *map(range, SIZES))))
VALUES = np.stack([CLASSES[:, 0] + 1.0, CLASSES[:, 1] + 1.0, *(CLASSES[:, 2:] / 7).T], axis=1)


class Small(DSpritesDataModule):
    """The same file format over a smaller grid."""

    factors = cast(
        Any, tuple(Factor(factor.name, size) for factor, size in zip(DSpritesDataModule.factors, SIZES, strict=True))
    )


class Trap:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.trace,)


def write(folder: Path, **changes: Any) -> Path:
    """The official keys, compressed, with metadata that must not be unpickled; None leaves a key out."""
    metadata = np.array({"title": "dSprites", "trap": Trap(folder / "trace")}, dtype=object)
    arrays = {"metadata": metadata, "imgs": IMAGES, "latents_classes": CLASSES, "latents_values": VALUES} | changes
    path = folder / NAME
    np.savez_compressed(path, **{key: array for key, array in arrays.items() if array is not None})
    return path
