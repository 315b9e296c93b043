"""Isaac3D: a robot arm and an object in a kitchen."""

from math import prod
from typing import Any

import numpy as np
from PIL import Image

from datamodules.factors import Factor
from datamodules.grids import GridDataModule, check_order
from datamodules.pictures import cached_pictures, resize
from datamodules.sources import MemoryMapped
from vaezoo.runs.files import require_own_file


class Isaac3DDataModule(GridDataModule):
    """Isaac3D (Nie et al., 2020): 737,280 pictures over nine factors.

    The official archive is unpacked to `data_dir/Isaac3D_down128`, with pictures of 128×128 in `images/000000.png` to
    `images/737279.png` and `labels.npy`. A cache of them is made at each image size, of 9.1 GB at 64.

    Args:
        image_size: Height and width to which pictures are resized bilinearly.
        options: As in `ImageDataModule`.
    """

    factors = (
        Factor("shape", 3, "categorical"),
        Factor("robot_x", 8),
        Factor("robot_y", 5),
        Factor("camera_height", 4),
        Factor("object_scale", 4),
        Factor("light_intensity", 4),
        Factor("light_y", 6),
        Factor("object_color", 4, "categorical"),
        Factor("wall_color", 4, "categorical"),
    )
    source = "file"

    def __init__(self, image_size: int = 64, **options: Any) -> None:
        if image_size < 1:
            raise ValueError(f"image_size must be at least 1, not {image_size}")
        super().__init__(**options)
        self.image_shape = (3, image_size, image_size)
        self.folder = self.data_dir / "Isaac3D_down128"

    def open(self) -> MemoryMapped:
        """The cache of the pictures."""
        if not (self.folder / "images").is_dir():
            raise FileNotFoundError(
                f"{self.folder / 'images'} is not there: fetch Isaac3D_128x128 from "
                f"https://github.com/NVlabs/High-res-disentanglement-datasets and unpack it in {self.data_dir}"
            )
        self._check_labels()
        names = [f"images/{i:06d}.png" for i in range(prod(self.factor_sizes))]
        cache = self.data_dir / ".cache" / f"isaac3d-{self.image_shape[1]}"
        return cached_pictures(cache, self.folder, names, self.image_shape, self._prepare)

    def _prepare(self, picture: Image.Image) -> Image.Image:
        return resize(picture.convert("RGB"), self.image_shape)

    def _check_labels(self) -> None:
        """Pictures are numbered as the grid is: labels are only read to make sure of it."""
        path = self.folder / "labels.npy"
        require_own_file(path, self.folder)
        try:
            labels = np.load(path, allow_pickle=False)
            expected = (prod(self.factor_sizes), len(self.factors))
            if labels.shape != expected or labels.dtype.kind != "f":
                raise ValueError(f"it is {labels.dtype} {labels.shape}, not floats {expected}")
            check_order(labels, self.factor_sizes)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{path} is missing: unpack the official archive again") from error
        except (EOFError, OSError, ValueError) as error:
            raise ValueError(f"{path} is not the official file ({error}): unpack the official archive again") from error
