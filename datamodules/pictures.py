"""Folders of image files, converted once into a cache."""

import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from datamodules.cache import cached
from datamodules.sources import MemoryMapped
from vaezoo.runs.files import require_own_file

STEP = 512  # pictures decoded at a time, fewer of large ones
MEMORY = 1 << 26  # bytes of them
SAMPLES = 1024  # files whose size and time are looked up at each start: all of 737,280 would take seconds to minutes

FORMATS = ("PNG", "JPEG")  # of official archives; no reader of another format is started, some of which run programs
WORKERS: int | None = None  # threads that decode; a few more than there are cores

Prepare = Callable[[Image.Image], Image.Image]


class Reading(NamedTuple):
    """How to read a folder of images.

    Attributes:
        remedy: What to do if an image is missing or broken.
        formats: Formats to try. Defaults to those of official archives.
        look_at_all: Check size and time of every file at each start, not of a sample.
        skip_broken: Replace broken images by black ones.
    """

    remedy: str = "unpack the official archive again"
    formats: tuple[str, ...] = FORMATS
    look_at_all: bool = False
    skip_broken: bool = False


OFFICIAL = Reading()


def cached_pictures(
    folder: Path,
    root: Path,
    names: Sequence[str],
    image_shape: tuple[int, int, int],
    prepare: Prepare,
    reading: Reading = OFFICIAL,
) -> MemoryMapped:
    """Open the cache of a folder of images; build it on all cores if needed.

    If broken images are skipped, the notes of the cache list them with the reason.

    Args:
        folder: The cache's own folder; its name tells how pictures are prepared.
        root: Folder of the pictures.
        names: Their files, below root, in the order of ids.
        image_shape: C, H, W of prepared pictures.
        prepare: Crops, resizes and converts a picture.
        reading: How to read them.
    """
    shape = (len(names), *image_shape)
    broken: dict[str, str] = {}

    def blocks() -> Iterator[NDArray[np.uint8]]:
        return _decoded(root, names, image_shape, prepare, reading, broken)

    return cached(folder, _origin(root, names, reading), shape, blocks, lambda: dict(sorted(broken.items())))


def centre(picture: Image.Image, height: int, width: int) -> Image.Image:
    """The middle of a picture."""
    left, top = (picture.width - width) // 2, (picture.height - height) // 2
    if left < 0 or top < 0:
        raise ValueError(f"{picture.width}×{picture.height} pixels cannot be cropped to {width}×{height}")
    return picture.crop((left, top, left + width, top + height))


def sized(channels: int, image_size: int | tuple[int, int]) -> tuple[int, int, int]:
    """Shape of images by their height and width, or by one number for both.

    Raises:
        ValueError: A size is below 1.
    """
    height, width = (image_size, image_size) if isinstance(image_size, int) else image_size
    if min(height, width) < 1:
        raise ValueError(f"image_size must be at least 1, not {image_size}")
    return channels, height, width


def resize(picture: Image.Image, image_shape: tuple[int, int, int]) -> Image.Image:
    """Resize bilinearly, averaging over all pixels that become one."""
    _, height, width = image_shape
    return picture.resize((width, height), Image.Resampling.BILINEAR)


def _origin(root: Path, names: Sequence[str], reading: Reading) -> dict[str, int]:
    if not names:
        raise ValueError(f"{root} holds no pictures: {reading.remedy}")
    sample = names if reading.look_at_all else names[:: -(-len(names) // SAMPLES)]
    try:
        stats = [(root / name).stat() for name in sample]
    except FileNotFoundError as error:
        raise _missing(Path(error.filename), reading) from error
    own = {}
    if reading.look_at_all:  # also which file is which: two of them may have changed places
        each = "\n".join(f"{stat.st_size} {stat.st_mtime_ns}" for stat in stats)
        own = {"each": crc32(each.encode()), "skip_broken": int(reading.skip_broken)}
    return own | {
        "pictures": len(names),
        "names": crc32("\n".join(names).encode(errors="surrogateescape")),
        "size": sum(stat.st_size for stat in stats),
        "mtime_ns": sum(stat.st_mtime_ns for stat in stats),  # a sum changes with each of them
    }


def _decoded(
    root: Path,
    names: Sequence[str],
    image_shape: tuple[int, int, int],
    prepare: Prepare,
    reading: Reading,
    broken: dict[str, str],
) -> Iterator[NDArray[np.uint8]]:
    channels, height, width = image_shape
    step = max(1, min(STEP, MEMORY // prod(image_shape)))

    def pixels(name: str) -> NDArray[np.uint8]:
        try:
            require_own_file(root / name, root)
            with Image.open(root / name, formats=reading.formats) as picture:
                array = np.asarray(prepare(picture), dtype=np.uint8)
            return array.reshape(height, width, channels).transpose(2, 0, 1)
        except FileNotFoundError as error:
            raise _missing(root / name, reading) from error
        # PIL raises SyntaxError for damaged PNG files.
        except (OSError, SyntaxError, ValueError, EOFError, struct.error, Image.DecompressionBombError) as error:
            reason = str(error).replace(f"{str(root / name)!r}", "").strip() or type(error).__name__
            if not reading.skip_broken:
                raise ValueError(f"{root / name} cannot be used ({reason}): {reading.remedy}") from error
            broken[name] = reason
            return np.zeros(image_shape, np.uint8)

    with ThreadPoolExecutor(WORKERS) as pool:  # PIL decodes outside Python's global lock
        for first in range(0, len(names), step):
            yield np.stack(list(pool.map(pixels, names[first : first + step])))


def _missing(path: Path, reading: Reading) -> FileNotFoundError:
    return FileNotFoundError(f"{path} is missing: {reading.remedy}")
