"""3DShapes: one object in a coloured room."""

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from datamodules.factors import Factor
from datamodules.grids import OfficialGrid, check_array, check_order
from datamodules.renderers.shapes3d import Shapes3DRenderer

if TYPE_CHECKING:
    import h5py

STEP = 1024  # pictures handed on at a time


class Shapes3DDataModule(OfficialGrid):
    """3DShapes (Burgess & Kim, 2018): 480,000 images of 64×64×3 over six factors.

    The official file is `data_dir/3dshapes.h5`; it is converted to a cache of 5.9 GB. Takes the arguments of
    `OfficialGrid`.
    """

    image_shape = (3, 64, 64)
    factors = (
        Factor("floor_hue", 10, "periodic"),
        Factor("wall_hue", 10, "periodic"),
        Factor("object_hue", 10, "periodic"),
        Factor("scale", 8),
        Factor("shape", 4, "categorical"),
        Factor("orientation", 15),
    )
    file_name = "3dshapes.h5"
    url = "https://storage.googleapis.com/3d-shapes/3dshapes.h5"
    md5 = "099a2078d58cec4daad0702c55d06868"
    renderer = Shapes3DRenderer
    drawing_error = 7.0  # of 50 genuine frames, 3.4; of frames in another order, about 85

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """Read the pictures in order, unpacking every gzip chunk once."""
        import h5py

        try:
            with h5py.File(self.file, "r") as file:
                images, labels = own_array(file, "images"), own_array(file, "labels")
                self._check(images, labels)
                chunk = images.chunks[0] if images.chunks else 1  # pictures that share gzip chunks
                step = chunk * max(1, STEP // chunk)
                for first in range(0, len(images), step):
                    block = images[first : first + step]
                    for part in range(0, len(block), STEP):
                        yield block[part : part + STEP].transpose(0, 3, 1, 2)
                    del block  # large where chunks hold many pictures: one at a time
        except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
            reason = str(error).partition(" (file ")[0]  # HDF5 goes on with addresses in memory
            raise ValueError(
                f"{self.file} is not the official file ({reason}): delete it and fetch it again"
            ) from error

    def _check(self, images: "h5py.Dataset", labels: "h5py.Dataset") -> None:
        channels, height, width = self.image_shape
        total = prod(self.factor_sizes)
        check_array("images", images.shape, images.dtype, (total, height, width, channels), np.uint8)
        check_array("labels", labels.shape, labels.dtype, (total, len(self.factor_sizes)), np.float64)
        check_order(labels[:], self.factor_sizes)


def own_array(file: "h5py.File", name: str) -> "h5py.Dataset":
    """An array whose bytes lie in the file itself: HDF5 can take them from any other file, by links or storage."""
    import h5py

    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{name} is a link")
    found = file[name]
    if not isinstance(found, h5py.Dataset) or found.is_virtual or found.external:
        raise ValueError(f"{name} is no array of its own")
    return found
