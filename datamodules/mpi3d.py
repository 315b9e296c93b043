"""MPI3D: a robot arm that moves an object, rendered in two ways or photographed."""

import zlib
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import IO, Any, Literal
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from datamodules.array_files import npy_header
from datamodules.cache import cached, origin_of
from datamodules.download import download
from datamodules.factors import Factor
from datamodules.grids import GridDataModule, check_array
from datamodules.sources import MemoryMapped
from vaezoo.runs.files import require_own_file

STEP = 1024  # pictures read at a time
PAGE = "https://github.com/rr-learning/disentanglement_dataset"
DIRECT = "https://huggingface.co/datasets/waleedgondal/mpi3d/resolve/main"
Subset = Literal["toy", "realistic", "real", "complex"]


FILES: dict[Subset, str] = {
    "toy": "mpi3d_toy.npz",
    "realistic": "mpi3d_realistic.npz",
    "real": "mpi3d_real.npz",
    "complex": "real3d_complicated_shapes_ordered.npz",  # on Google Drive, which has no direct address
}


class MPI3DDataModule(GridDataModule):
    """MPI3D (Gondal et al., 2019): pictures of 64×64×3 over seven factors, 1,036,800 of them, or 460,800 complex ones.

    Put the official file of a subset in `data_dir`, under its original name: `mpi3d_toy.npz`, `mpi3d_realistic.npz`,
    `mpi3d_real.npz` or `real3d_complicated_shapes_ordered.npz` (complex, of 4 colours and shapes). It is converted to a
    cache of 12.7 GB, or 5.7 GB. The file holds no labels; its order is the documented one.

    Args:
        subset: Simple drawings ("toy"), realistic ones, photographs ("real"), or those of everyday objects ("complex").
        download: Download the file if it is missing; not for "complex", which has no direct URL.
        options: As in `ImageDataModule`.
    """

    image_shape = (3, 64, 64)
    factors: tuple[Factor, ...] = (
        Factor("object_color", 6, "categorical"),
        Factor("object_shape", 6, "categorical"),
        Factor("object_size", 2),
        Factor("camera_height", 3),
        Factor("background_color", 3, "categorical"),
        Factor("horizontal_axis", 40),
        Factor("vertical_axis", 40),
    )
    source = "file"

    def __init__(self, subset: Subset = "toy", download: bool = False, **options: Any) -> None:
        if subset not in FILES:
            raise ValueError(f"subset must be one of {', '.join(FILES)}, not {subset!r}")
        if subset == "complex":
            if download:
                raise ValueError(f"complex has no direct address: set download=False and fetch it from {PAGE}")
            self.factors = (*(replace(factor, size=4) for factor in self.factors[:2]), *self.factors[2:])
        super().__init__(**options)
        self.file, self.subset, self.download = self.data_dir / FILES[subset], subset, download

    def open(self) -> MemoryMapped:
        """The cache of the official file."""
        if self.download and not self.file.exists():
            download(f"{DIRECT}/{self.file.name}", self.file, md5=None)
        if not self.file.exists():
            fetch = "" if self.subset == "complex" else " or set download=True"
            raise FileNotFoundError(f"{self.file} is not there: fetch it from {PAGE}{fetch}")
        require_own_file(self.file, self.data_dir)
        shape = (prod(self.factor_sizes), *self.image_shape)
        return cached(self.data_dir / ".cache" / self.file.stem, origin_of(self.file), shape, self.blocks)

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """Read the pictures in order, unpacking some at a time."""
        try:
            with ZipFile(self.file) as archive, archive.open("images.npy") as stream:
                yield from self._pictures(stream)
        except (BadZipFile, EOFError, LookupError, OSError, RuntimeError, ValueError, zlib.error) as error:
            raise ValueError(f"{self.file} is not the official file ({error}): delete it and fetch it again") from error

    def _pictures(self, stream: IO[bytes]) -> Iterator[NDArray[np.uint8]]:
        channels, height, width = self.image_shape
        total = prod(self.factor_sizes)
        shape, by_column, dtype = npy_header(stream)
        check_array("images", shape, dtype, (total, height, width, channels), np.uint8)
        if by_column:
            raise ValueError("images is in Fortran order")
        for first in range(0, total, STEP):
            count = min(STEP, total - first)
            block = np.frombuffer(stream.read(count * prod(self.image_shape)), np.uint8)
            yield block.reshape(count, height, width, channels).transpose(0, 3, 1, 2)
        if stream.read(1):  # at the end of an entry its checksum is compared too
            raise ValueError("images goes on after the last picture")
