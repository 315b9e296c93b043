"""A small Isaac3D in the official layout."""

from itertools import product
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from PIL import Image

from datamodules.factors import Factor
from datamodules.isaac3d import Isaac3DDataModule

SIZES = (3, 2, 1, 2, 1, 1, 3, 1, 2)
LABELS = np.array(list(product(*(np.linspace(0, 1, size) for size in SIZES))), np.float32)
TOTAL = prod(SIZES)
PIXELS = np.random.default_rng(0).integers(0, 256, (TOTAL, 128, 128, 3), dtype=np.uint8)


class Small(Isaac3DDataModule):
    """The same folder over a smaller grid."""

    factors = cast(
        Any, tuple(Factor(factor.name, size) for factor, size in zip(Isaac3DDataModule.factors, SIZES, strict=True))
    )


def write(folder: Path, labels: Any = LABELS) -> Path:
    images = folder / "Isaac3D_down128" / "images"
    images.mkdir(parents=True, exist_ok=True)
    for number, pixels in enumerate(PIXELS):
        Image.fromarray(pixels).save(images / f"{number:06d}.png", compress_level=1)
    if labels is not None:
        np.save(images.parent / "labels.npy", labels)
    return images.parent
