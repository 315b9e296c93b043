"""A small Falcor3D in the official layout."""

from itertools import product
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from PIL import Image

from datamodules import Falcor3DDataModule
from datamodules.factors import Factor

SIZES = (2, 3, 1, 2, 1, 2, 2)
LABELS = np.array(list(product(*(np.linspace(0, 1, size) for size in SIZES))), np.float32)
PIXELS = np.random.default_rng(0).integers(0, 256, (prod(SIZES), 128, 128, 3), dtype=np.uint8)


class Small(Falcor3DDataModule):
    """The same folder over a smaller grid."""

    factors = cast(
        Any, tuple(Factor(factor.name, size) for factor, size in zip(Falcor3DDataModule.factors, SIZES, strict=True))
    )


def write(folder: Path, labels: Any = LABELS) -> Path:
    images = folder / "Falcor3D_down128" / "images"
    images.mkdir(parents=True)
    for number, pixels in enumerate(PIXELS):
        Image.fromarray(pixels).save(images / f"{number:06d}.png", compress_level=1)
    with (images.parent / "train-rec.labels").open("wb") as file:
        np.save(file, labels)
    return images.parent
