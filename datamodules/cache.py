"""Data that is slow to read at random, converted once into bytes that can be memory-mapped.

A cache is a folder with `images.u8`, uint8 (N, C, H, W), and `manifest.json`, which says what it was made from, with
notes of the source. Nothing but these two files is ever removed, and no link is followed: a data folder may come from
anyone.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from errno import ENOSPC
from math import prod
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from tqdm import tqdm

from datamodules.sources import MemoryMapped

VERSION = 1  # of the format: caches of another one are built again
IMAGES, MANIFEST = "images.u8", "manifest.json"
CHUNK = 1 << 20  # bytes to a checksum
SAMPLES = 64  # chunks that are checked at each start

Blocks = Callable[[], Iterable[NDArray[np.uint8]]]
Notes = Callable[[], dict[str, str]]


def origin_of(path: Path) -> dict[str, int]:
    """What tells one version of a source file from another without reading it."""
    return {"size": path.stat().st_size, "mtime_ns": path.stat().st_mtime_ns}


def cached(
    folder: Path,
    origin: Mapping[str, int],
    shape: tuple[int, int, int, int],
    blocks: Blocks,
    notes: Notes = dict,
) -> MemoryMapped:
    """Open a cache; build it first where it is missing, damaged or made from another origin.

    Processes that start at once build it once: the others wait. Nothing is locked or written where the cache is good.

    Args:
        folder: The cache's own folder.
        origin: What it is made from, as in `origin_of`.
        shape: N, C, H, W.
        blocks: Reads the source: arrays (n, C, H, W) that N images make up. It must raise its own errors as ValueError
            or FileNotFoundError; any other OSError is taken for one of the cache's disk.
        notes: What is to be remembered of the source, asked for when all of it was read; `notes_of` gives it back.

    Raises:
        OSError: The cache cannot be written; nothing is left of it.
        ValueError: A link, or a folder with files of its own, is in the cache's place.
    """
    _refuse_links(folder)
    if not _is_good(folder, origin, shape):
        with _explained(folder, prod(shape)):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(_lock_of(folder)):
                if not _is_good(folder, origin, shape):  # another process may have built it meanwhile
                    _build(folder, origin, shape, blocks, notes)
    return MemoryMapped(folder / IMAGES, shape)


def notes_of(folder: Path) -> dict[str, str]:
    """Notes that were taken when a cache was built."""
    found: dict[str, str] = json.loads((folder / MANIFEST).read_text()).get("notes", {})
    return found


def _is_good(folder: Path, origin: Mapping[str, int], shape: tuple[int, ...]) -> bool:
    """Whether a cache is there, made from this origin, and whole.

    Reading all of it would take too long at each start (5.9 GB for 3DShapes). Its length and evenly spaced chunks, the
    first and the last among them, find a file that was cut off, overwritten or zeroed by a crash.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        if any(manifest[key] != value for key, value in _identity(origin, shape).items()):
            return False
        checksums = manifest["checksums"]
        picked = np.unique(np.linspace(0, len(checksums) - 1, SAMPLES, dtype=int)).tolist()
        with (folder / IMAGES).open("rb") as file:
            if os.fstat(file.fileno()).st_size != prod(shape):
                return False
            return all(_checksum_at(file, i) == checksums[i] for i in picked)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):  # no manifest, or one that is damaged too
        return False


def _build(folder: Path, origin: Mapping[str, int], shape: tuple[int, ...], blocks: Blocks, notes: Notes) -> None:
    draft = _draft_of(folder)
    for old in (folder, draft):  # first: a disk seldom has room for both
        _remove(old)
    try:
        draft.mkdir()
        if shutil.disk_usage(draft).free < prod(shape):
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        written = _write(draft / IMAGES, folder.name, shape, blocks)
        checksums = _checksums(draft / IMAGES, written)
        manifest = _identity(origin, shape) | {"checksum": written, "checksums": checksums, "notes": notes()}
        (draft / MANIFEST).write_text(json.dumps(manifest))
        draft.rename(folder)
    finally:
        _remove(draft)


def _draft_of(folder: Path) -> Path:
    return folder.parent / f"{folder.name}.part"


def _lock_of(folder: Path) -> Path:
    return folder.parent / f"{folder.name}.lock"


def _refuse_links(folder: Path) -> None:
    draft = _draft_of(folder)
    files = [place / name for place in (folder, draft) for name in (IMAGES, MANIFEST)]
    for path in (folder.parent, folder, draft, _lock_of(folder), *files):
        if path.is_symlink():
            raise ValueError(f"{path} is a link: a cache follows none; remove it, or link the whole data_dir instead")


def _remove(folder: Path) -> None:
    """Remove a cache: its two files, and the folder, which must hold no other."""
    if not folder.exists():
        return
    if folder.is_dir() and (others := sorted({path.name for path in folder.iterdir()} - {IMAGES, MANIFEST})):
        raise ValueError(f"{folder} is the place of a cache but holds {others[0]}: move it elsewhere")
    for name in (IMAGES, MANIFEST):
        (folder / name).unlink(missing_ok=True)
    folder.rmdir()


def _write(path: Path, name: str, shape: tuple[int, ...], blocks: Blocks) -> int:
    """Write all blocks to a file; return their checksum."""
    checksum = 0
    with path.open("wb") as file, tqdm(total=shape[0], desc=f"{name}: building cache", unit="img") as bar:
        for block in blocks():
            data = np.ascontiguousarray(block).data
            file.write(data)
            checksum = crc32(data, checksum)
            bar.update(len(block))
        file.flush()
        os.fsync(file.fileno())
    if path.stat().st_size != prod(shape):
        raise ValueError(
            f"{name}: the source gave {path.stat().st_size} bytes of images, not the {prod(shape)} expected"
        )
    return checksum


def _checksums(path: Path, written: int) -> list[int]:
    """Checksums of a file's chunks; the whole of it, read back, must be what was written."""
    checksums, whole = [], 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            checksums.append(crc32(chunk))
            whole = crc32(chunk, whole)
    if whole != written:
        raise OSError("what is read back differs from what was written")
    return checksums


def _checksum_at(file: Any, index: int) -> int:
    file.seek(index * CHUNK)
    return crc32(file.read(CHUNK))


def _identity(origin: Mapping[str, int], shape: tuple[int, ...]) -> dict[str, Any]:
    return {"version": VERSION, "source": dict(origin), "shape": list(shape)}


@contextmanager
def _explained(folder: Path, size: int) -> Iterator[None]:
    """Say what an error of the disk means for the user."""
    try:
        yield
    except FileNotFoundError:  # of the source, which has explained it
        raise
    except OSError as error:
        raise OSError(
            f"cannot write the cache {folder} of {size / 1e9:.1f} GB ({error.strerror or error}): free the space, "
            "or set data_dir to a writable folder on a disk with enough room"
        ) from error
