"""Small NORB: grey photographs of toys under six lights."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from datamodules.cache import cached
from datamodules.download import download
from datamodules.factors import Factor, ravel, unravel
from datamodules.file_sets import inverse, origin_of_all, resized
from datamodules.grids import GridDataModule, check_array
from datamodules.pictures import sized
from datamodules.sources import Picked

PAGE = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small"
TRAINING = "smallnorb-5x46789x9x18x6x2x96x96-training"
TESTING = "smallnorb-5x01235x9x18x6x2x96x96-testing"
MD5 = {  # of the packed files
    f"{TRAINING}-dat": "66054832f9accfe74a0f4c36a75bc0a2",
    f"{TRAINING}-cat": "23c8b86101fbf0904a000b43d3ed2fd9",
    f"{TRAINING}-info": "51dee1210a742582ff607dfd94e332e3",
    f"{TESTING}-dat": "e4ad715691ed5a3a5f138751a4ceb071",
    f"{TESTING}-cat": "5aa791cd7e6016cf957ce9bdb93b8603",
    f"{TESTING}-info": "a9454f3864d7fd4bb3ea7fc3eb84924e",
}
MAGIC: dict[type, int] = {np.uint8: 0x1E3D4C55, np.int32: 0x1E3D4C54}
SIDE, CAMERAS = 96, 2
STEP = 1024  # pictures read at a time


class SmallNORBDataModule(GridDataModule):
    """Small NORB (LeCun et al., 2004): 48,600 photographs of 10 toys in each of 5 categories, over four factors.

    The official files are the six `data_dir/smallnorb/smallnorb-*.mat`, packed (`.mat.gz`) or not: NORB's own binary
    matrices, not MATLAB's. As in disentanglement_lib, both official parts are merged, only the first camera of each
    pair is used, and the toy within a category is not a factor: every combination of factors has ten images. Each image
    size gets a cache, 199 MB at 64.

    Args:
        image_size: Height and width; images are resized bilinearly. disentanglement_lib uses Lanczos.
        download: Download missing files.
        val_size: As in `ImageDataModule`.
        test_size: As in `ImageDataModule`.
        options: As in `ImageDataModule`.
    """

    factors = (
        Factor("category", 5, "categorical"),
        Factor("elevation", 9),
        Factor("azimuth", 18, "periodic"),
        Factor("lighting", 6, "categorical"),
    )
    toys = 10
    source = "file"

    def __init__(
        self,
        image_size: int = 64,
        download: bool = False,
        val_size: int | float = 0.1,
        test_size: int | float = 0.1,
        **options: Any,
    ) -> None:
        self.image_shape = sized(1, image_size)
        super().__init__(val_size=val_size, test_size=test_size, **options)
        self.folder, self.download = self.data_dir / "smallnorb", download

    def factors_of(self, ids: Tensor) -> Tensor:
        """Factor indices of images by id, (B, 4); ids count toys fastest."""
        return unravel(ids // self.toys, self.factor_sizes)

    def images_at(self, factors: Tensor) -> Tensor:
        """Images of the first toy at factor indices (B, 4), float in [0, 1] on the host, (B, 1, H, W)."""
        return self.pictures.images(ravel(factors, self.factor_sizes).cpu() * self.toys).float() / 255

    def open(self) -> Picked:
        """The cache of the pictures, numbered as the grid is."""
        files = {name: self._file(name) for name in MD5}
        origin = origin_of_all(self.folder, list(files.values()))
        total = prod(self.factor_sizes) * self.toys
        ids = {part: self._ids(files, part) for part in (TRAINING, TESTING)}
        rows = inverse(np.concatenate(list(ids.values())), total, self.folder)
        counts = {part: len(own) for part, own in ids.items()}
        cache = self.data_dir / ".cache" / f"smallnorb-{self.image_shape[1]}"
        stored = cached(cache, origin, (total, *self.image_shape), lambda: self._blocks(files, counts))
        return Picked(stored, rows)

    def _file(self, name: str) -> Path:
        plain, packed = self.folder / f"{name}.mat", self.folder / f"{name}.mat.gz"
        if self.download and not plain.exists() and not packed.exists():
            download(f"{PAGE}/{packed.name}", packed, MD5[name])
        found = plain if plain.exists() else packed
        if not found.exists():
            raise FileNotFoundError(f"{plain} is not there, nor packed: fetch it from {PAGE} or set download=True")
        return found

    def _ids(self, files: dict[str, Path], part: str) -> NDArray[np.int64]:
        """Ids of the pictures of one part, in its order."""
        with _matrix(files[f"{part}-cat"], np.int32, 1) as (shape, stream):
            category = _read(stream, np.int32, shape)
        with _matrix(files[f"{part}-info"], np.int32, 2) as (shape, stream):
            toy, elevation, azimuth, lighting = _read(stream, np.int32, shape).T
            if (azimuth % 2).any():
                raise ValueError("azimuths are not 0, 2, 4 and so on")
            indices = (category, elevation, azimuth // 2, lighting, toy)
            return np.ravel_multi_index(indices, (*self.factor_sizes, self.toys))

    def _blocks(self, files: dict[str, Path], counts: dict[str, int]) -> Iterator[NDArray[np.uint8]]:
        """Pictures of the first camera, in the order of the files."""
        for part, count in counts.items():
            with _matrix(files[f"{part}-dat"], np.uint8, 4) as (shape, stream):
                check_array("it", shape, np.uint8, (count, CAMERAS, SIDE, SIDE), np.uint8)
                for first in range(0, count, STEP):
                    pairs = _read(stream, np.uint8, (min(STEP, count - first), *shape[1:]))
                    yield resized(pairs[:, 0], self.image_shape)


@contextmanager
def _matrix(path: Path, dtype: type, dimensions: int) -> Iterator[tuple[tuple[int, ...], BufferedIOBase]]:
    """Shape of a binary matrix, and a stream of its numbers; whatever is wrong names the file.

    The header is the type, the number of dimensions and at least three sizes, as 32-bit integers, lowest byte first.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            magic, count = _read(stream, np.int32, (2,)).tolist()
            if (magic, count) != (MAGIC[dtype], dimensions):
                raise ValueError(f"it is no matrix of {np.dtype(dtype)} with {dimensions} dimensions")
            shape = tuple(_read(stream, np.int32, (max(count, 3),)).tolist()[:count])
            yield shape, stream
            if stream.read(1):  # the end of a packed file is where its checksum is compared
                raise ValueError("it goes on after the last number")
    except (EOFError, OSError, ValueError, zlib.error) as error:
        reason = "its packing is damaged" if isinstance(error, (gzip.BadGzipFile, zlib.error)) else error
        raise ValueError(f"{path} is not the official file ({reason}): delete it and fetch it again") from error


def _read(stream: BufferedIOBase, dtype: type, shape: tuple[int, ...]) -> NDArray[Any]:
    """The next numbers of a stream."""
    kind = np.dtype(dtype).newbyteorder("<")
    data = stream.read(prod(shape) * kind.itemsize)
    if len(data) != prod(shape) * kind.itemsize:
        raise EOFError("it is cut off")
    return np.frombuffer(data, kind).reshape(shape)
