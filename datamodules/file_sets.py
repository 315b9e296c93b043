"""Datasets in several official files, whose pictures come as arrays and in another order than the grid's."""

from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from datamodules.cache import origin_of
from datamodules.pictures import resize
from vaezoo.runs.files import require_own_file


def origin_of_all(folder: Path, paths: Sequence[Path]) -> dict[str, int]:
    """What tells one version of several files from another without reading them.

    Raises:
        ValueError: A file is not the folder's own.
    """
    for path in paths:
        require_own_file(path, folder)
    origins = [origin_of(path) for path in paths]
    names = crc32("\n".join(path.name for path in paths).encode())
    return {"names": names, **{key: sum(origin[key] for origin in origins) for key in ("size", "mtime_ns")}}


def resized(pictures: NDArray[np.uint8], image_shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Pictures (n, H, W) or (n, H, W, C) resized bilinearly to (n, *image_shape)."""
    channels, height, width = image_shape
    small = [np.asarray(resize(Image.fromarray(picture), image_shape)) for picture in pictures]
    return np.stack(small).reshape(-1, height, width, channels).transpose(0, 3, 1, 2)


def inverse(ids: NDArray[np.int64], total: int, folder: Path) -> Tensor:
    """Rows by id, from the id of each row that a folder's files hold.

    Raises:
        ValueError: The ids are not 0 to total - 1, each once.
    """
    if not np.array_equal(np.sort(ids), np.arange(total)):
        raise ValueError(
            f"{folder} holds {len(ids)} pictures that are not the {total} of the official files, each once: delete it "
            "and fetch it again"
        )
    return torch.from_numpy(np.argsort(ids))
