"""Arrays in npy, npz and HDF5 files, read part by part and without pickles."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from datamodules.shapes3d import own_array

HDF5 = (".h5", ".hdf5")
SUFFIXES = (".npy", ".npz", *HDF5)


class MissingArrayError(ValueError):
    """A file holds no array of that name."""

    def __init__(self, path: Path, key: str, others: Iterable[str]) -> None:
        super().__init__(f"{path} holds no array {key}, only {', '.join(others)}: name another")


class StoredArray(NamedTuple):
    """An array in an open file.

    Attributes:
        shape: Its shape.
        dtype: Type of its numbers.
        rows: Reads rows, given the first row and their number. npz files are read from start to end.
    """

    shape: tuple[int, ...]
    dtype: Any
    rows: Callable[[int, int], NDArray[Any]]


@contextmanager
def stored_array(path: Path, key: str) -> Iterator[StoredArray]:
    """Open an array of a file: the only one of an npy file, else the named one.

    Raises:
        FileNotFoundError: The file is missing.
        MissingArrayError: The file holds no array of that name.
        ValueError: It cannot be read, or holds Python objects.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path} is no file of arrays: give {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: put the file there, or set data_dir and file")
    kinds = {".npy": _npy, ".npz": _npz}
    try:
        with kinds.get(suffix, _hdf5)(path, key) as found:
            if found.dtype.hasobject:
                raise ValueError(f"{key} holds Python objects, which are never read")
            if not found.shape or min(found.shape) < 1:
                raise ValueError(f"{key} is empty, of shape {found.shape}")
            yield found
    except MissingArrayError:
        raise
    except (BadZipFile, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError, zlib.error) as error:
        reason = str(error).partition(" (file ")[0]  # HDF5 goes on with addresses in memory
        raise ValueError(f"{path} cannot be used ({reason}): write it again") from error


def parts(array: StoredArray, memory: int) -> Iterator[NDArray[Any]]:
    """All rows of an array, in parts of at most the given number of bytes."""
    step = max(1, memory // max(prod(array.shape[1:]) * array.dtype.itemsize, 1))
    for first in range(0, array.shape[0], step):
        yield array.rows(first, min(step, array.shape[0] - first))


def npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, Any]:
    """Shape, whether it is in Fortran order, and type of an array in NumPy's format."""
    old = npy.read_magic(stream) == (1, 0)
    shape, by_column, dtype = (npy.read_array_header_1_0 if old else npy.read_array_header_2_0)(stream)
    return shape, by_column, dtype


@contextmanager
def _npy(path: Path, key: str) -> Iterator[StoredArray]:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    yield StoredArray(array.shape, array.dtype, lambda first, count: np.array(array[first : first + count]))


@contextmanager
def _npz(path: Path, key: str) -> Iterator[StoredArray]:
    with ZipFile(path) as archive:
        if f"{key}.npy" not in archive.namelist():
            raise MissingArrayError(path, key, (name.removesuffix(".npy") for name in archive.namelist()))
        with archive.open(f"{key}.npy") as stream:
            shape, by_column, dtype = npy_header(stream)
            if by_column:
                raise ValueError(f"{key} is in Fortran order: save it as np.ascontiguousarray")

            def rows(first: int, count: int) -> NDArray[Any]:
                data = stream.read(count * prod(shape[1:]) * dtype.itemsize)
                return np.frombuffer(data, dtype).reshape(count, *shape[1:])

            yield StoredArray(shape, dtype, rows)


@contextmanager
def _hdf5(path: Path, key: str) -> Iterator[StoredArray]:
    import h5py  # takes as long to load as all datamodules

    with h5py.File(path, "r") as file:
        if key not in file:
            raise MissingArrayError(path, key, file)
        array = own_array(file, key)
        text = h5py.check_string_dtype(array.dtype) is not None
        found = array.asstr()[:].astype(np.str_) if text else array  # names are few
        yield StoredArray(array.shape, found.dtype, lambda first, count: np.asarray(found[first : first + count]))
