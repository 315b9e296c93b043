"""A small Cars3D in the official layout."""

from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy.io import savemat

from datamodules import Cars3DDataModule
from datamodules.factors import Factor

ELEVATIONS, AZIMUTHS = 2, 3
CARS = ("car_010_mesh", "car_002_mesh", "car_199_mesh", "car_100_mesh", "car_001_mesh")  # written in this order
PIXELS = {
    name: np.random.default_rng(seed).integers(0, 256, (128, 128, 3, AZIMUTHS, ELEVATIONS), dtype=np.uint8)
    for seed, name in enumerate(CARS)
}


class Small(Cars3DDataModule):
    """The same files over a smaller grid."""

    factors = cast(Any, (Factor("elevation", ELEVATIONS), Factor("azimuth", AZIMUTHS), Factor("car", len(CARS))))


def write(folder: Path) -> Path:
    cars = folder / "cars"
    cars.mkdir(parents=True)
    for name, pixels in PIXELS.items():
        savemat(cars / f"{name}.mat", {"im": pixels, "mask": pixels[:, :, 0]}, do_compression=True)
    (cars / "list.txt").write_text("\n".join(CARS))
    return cars
