"""A small SmallNORB in the official layout: two parts, each with other toys, in an order of their own."""

import gzip
import struct
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np

from datamodules import SmallNORBDataModule
from datamodules.factors import Factor
from datamodules.smallnorb import TESTING, TRAINING

SIZES, TOYS = (2, 3, 2, 2), {TRAINING: (1, 3), TESTING: (0, 2)}
TYPES = {"u": b"\x55\x4c\x3d\x1e", "i": b"\x54\x4c\x3d\x1e"}  # as NYU's page prints them
# The picture of each camera, by category, elevation, azimuth, lighting and toy.
PIXELS = np.random.default_rng(0).integers(0, 256, (*SIZES, 4, 2, 96, 96), dtype=np.uint8)


class Small(SmallNORBDataModule):
    """The same files over a smaller grid."""

    factors = cast(
        Any, tuple(Factor(factor.name, size) for factor, size in zip(SmallNORBDataModule.factors, SIZES, strict=True))
    )
    toys = 4


def write(folder: Path, packed: bool = True) -> Path:
    files = folder / "smallnorb"
    files.mkdir(parents=True)
    for part, toys in TOYS.items():
        places = [(*place, toy) for place in product(*map(range, SIZES)) for toy in toys]
        np.random.default_rng(1).shuffle(places)
        pictures = np.stack([PIXELS[tuple(place)] for place in places])
        labels = np.array(places, np.int32)[:, [0, 4, 1, 2, 3]] * [1, 1, 1, 2, 1]  # azimuths are even
        matrices = {"dat": pictures, "cat": labels[:, 0], "info": labels[:, 1:]}
        for kind, matrix in matrices.items():
            data = matrix_bytes(matrix if kind == "dat" else matrix.astype(np.int32))
            path = files / f"{part}-{kind}.mat{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(data, 1) if packed else data)
    return files


def matrix_bytes(matrix: Any) -> bytes:
    sizes = [*matrix.shape, *[1] * (3 - matrix.ndim)]
    header = TYPES[matrix.dtype.kind] + struct.pack(f"<{1 + len(sizes)}i", matrix.ndim, *sizes)
    return bytes(header + np.ascontiguousarray(matrix).tobytes())
