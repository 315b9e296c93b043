"""dSprites: a white shape on black."""

import zlib
from collections.abc import Iterator
from math import prod
from typing import IO, Any, Literal
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from datamodules.array_files import npy_header
from datamodules.factors import Factor, ravel
from datamodules.grids import OfficialGrid, check_array, check_order
from datamodules.renderers.dsprites import DSpritesRenderer

STEP = 4096  # pictures read at a time


class DSpritesDataModule(OfficialGrid):
    """dSprites (Matthey et al., 2017): 737,280 binary images of 64×64 over five factors; colour is always white.

    The official file is `data_dir/dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz`; it is converted to a cache of 3.0
    GB.

    Args:
        balance: How the labelled set is balanced: over all "classes" of the labelled factors, or over the 144 cells of
            PartedVAE (Hajimiri et al., 2021), shape × scale × "halves" of orientation, x and y.
        options: As in `OfficialGrid`.
    """

    image_shape = (1, 64, 64)
    factors = (
        Factor("shape", 3, "categorical"),
        Factor("scale", 6),
        Factor("orientation", 40, "periodic"),
        Factor("x", 32),
        Factor("y", 32),
    )
    position_factors = ("y", "x")
    file_name = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
    url = f"https://github.com/deepmind/dsprites-dataset/raw/master/{file_name}"
    md5 = "7da33b31b13a06f4b04a70402ce90c2e"
    renderer = DSpritesRenderer
    drawing_error = 1.0  # of 320 genuine frames, below 0.01; of frames in another order, about 20

    def __init__(self, balance: Literal["classes", "halves"] = "classes", **options: Any) -> None:
        super().__init__(**options)
        self.balance = balance

    def cells_of(self, ids: Tensor) -> Tensor:
        """Cells over which the labelled set is balanced, (B,)."""
        if self.balance == "classes":
            return super().cells_of(ids)
        shape_size, scale_size, *halved = self.factor_sizes
        indices = self.factors_of(ids)
        halves = indices[:, 2:] >= torch.tensor(halved) // 2
        return ravel(torch.cat([indices[:, :2], halves.long()], dim=1), (shape_size, scale_size, 2, 2, 2))

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """Read the pictures in order, unpacking some at a time; the pickled metadata stay closed."""
        total, sizes = prod(self.factor_sizes), (1, *self.factor_sizes)
        try:
            with np.load(self.file, allow_pickle=False) as archive:
                for name, kind in (("latents_values", np.float64), ("latents_classes", np.int64)):
                    with archive.zip.open(f"{name}.npy") as stream:  # its size is known before memory is asked for
                        shape, _, dtype = npy_header(stream)
                    check_array(name, shape, dtype, (total, len(sizes)), kind)
                check_order(archive["latents_classes"], sizes)
                with archive.zip.open("imgs.npy") as stream:
                    yield from _pictures(stream, total, self.image_shape)
        except (BadZipFile, EOFError, LookupError, OSError, RuntimeError, ValueError, zlib.error) as error:
            raise ValueError(f"{self.file} is not the official file ({error}): delete it and fetch it again") from error


def _pictures(stream: IO[bytes], total: int, image_shape: tuple[int, int, int]) -> Iterator[NDArray[np.uint8]]:
    shape, by_column, dtype = npy_header(stream)
    check_array("imgs", shape, dtype, (total, *image_shape[1:]), np.uint8)
    if by_column:
        raise ValueError("imgs is in Fortran order")
    for first in range(0, total, STEP):
        count = min(STEP, total - first)
        block = np.frombuffer(stream.read(count * prod(image_shape)), np.uint8).reshape(count, *image_shape)
        if block.max() > 1:
            raise ValueError(f"imgs holds {block.max()}, not only 0 and 1")
        yield block * np.uint8(255)
