"""Folders of picture files, converted once into a cache."""

import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from datamodules.cache import cached
from datamodules.sources import MemoryMapped
from vaezoo.runs.files import require_own_file

STEP = 512  # pictures decoded at a time
SAMPLES = 1024  # files whose size and time are looked up at each start: all of 737,280 would take seconds to minutes

FORMATS = ("PNG", "JPEG")  # no reader of another format is ever started, some of which run programs

Prepare = Callable[[Image.Image], Image.Image]


def cached_pictures(
    folder: Path, root: Path, names: Sequence[str], image_shape: tuple[int, int, int], prepare: Prepare
) -> MemoryMapped:
    """Open the cache of a folder of pictures, building it where needed.

    Args:
        folder: The cache's own folder; its name tells how pictures are prepared.
        root: Folder of the pictures.
        names: Their files, below root, in the order of ids.
        image_shape: C, H, W of prepared pictures.
        prepare: Crops, resizes and converts a picture.
    """
    shape = (len(names), *image_shape)
    return cached(folder, _origin(root, names), shape, lambda: _decoded(root, names, image_shape, prepare))


def centre(picture: Image.Image, height: int, width: int) -> Image.Image:
    """The middle of a picture."""
    left, top = (picture.width - width) // 2, (picture.height - height) // 2
    if left < 0 or top < 0:
        raise ValueError(f"{picture.width}×{picture.height} pixels cannot be cropped to {width}×{height}")
    return picture.crop((left, top, left + width, top + height))


def resize(picture: Image.Image, image_shape: tuple[int, int, int]) -> Image.Image:
    """Resize bilinearly, averaging over all pixels that become one."""
    _, height, width = image_shape
    return picture.resize((width, height), Image.Resampling.BILINEAR)


def _origin(root: Path, names: Sequence[str]) -> dict[str, int]:
    if not names:
        raise ValueError(f"{root} holds no pictures: unpack the official archive again")
    sample = names[:: -(-len(names) // SAMPLES)]
    try:
        stats = [(root / name).stat() for name in sample]
    except FileNotFoundError as error:
        raise _missing(Path(error.filename)) from error
    return {
        "pictures": len(names),
        "names": crc32("\n".join(names).encode()),
        "size": sum(stat.st_size for stat in stats),
        "mtime_ns": sum(stat.st_mtime_ns for stat in stats),  # a sum changes with each of them
    }


def _decoded(
    root: Path, names: Sequence[str], image_shape: tuple[int, int, int], prepare: Prepare
) -> Iterator[NDArray[np.uint8]]:
    channels, height, width = image_shape

    def pixels(name: str) -> NDArray[np.uint8]:
        try:
            require_own_file(root / name, root)
            with Image.open(root / name, formats=FORMATS) as picture:
                array = np.asarray(prepare(picture), dtype=np.uint8)
            return array.reshape(height, width, channels).transpose(2, 0, 1)
        except FileNotFoundError as error:
            raise _missing(root / name) from error
        # PIL raises SyntaxError for damaged PNG files.
        except (OSError, SyntaxError, ValueError, EOFError, struct.error, Image.DecompressionBombError) as error:
            raise ValueError(f"{root / name} cannot be used ({error}): unpack the official archive again") from error

    with ThreadPoolExecutor() as pool:  # PIL decodes outside Python's global lock
        for first in range(0, len(names), STEP):
            yield np.stack(list(pool.map(pixels, names[first : first + STEP])))


def _missing(path: Path) -> FileNotFoundError:
    return FileNotFoundError(f"{path} is missing: unpack the official archive again")
