"""A small CelebA in torchvision's layout."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from torchvision.datasets import CelebA

from datamodules.celeba import ATTRIBUTES

TOTAL = 20
PARTS = [0] * 12 + [1] * 3 + [2] * 5
LABELS = np.random.default_rng(0).integers(0, 2, (TOTAL, 40))
NAMES = [f"{number:06d}.jpg" for number in range(1, TOTAL + 1)]


def picture(number: int) -> Image.Image:
    """Smooth enough for JPEG: brighter to the right and downwards, with a tone of its own."""
    rows, columns = np.mgrid[:218, :178]
    return Image.fromarray(np.stack([rows, columns, np.full_like(rows, 10 * number)], axis=2).astype(np.uint8))


def table(rows: Any, header: str = "", width: int = 3) -> str:
    lines = [
        f"{number:06d}.jpg {' '.join(f'{value:>{width}}' for value in row)}\n" for number, row in enumerate(rows, 1)
    ]
    return (f"{len(rows)}\n{header}\n" if header else "") + "".join(lines)


def write(folder: Path, labels: NDArray[Any] = LABELS, parts: list[int] = PARTS) -> Path:
    """The lists as they are published: a count and names above some, several blanks between numbers."""
    root, total = folder / "celeba", len(labels)
    (root / "img_align_celeba").mkdir(parents=True)
    for number in range(total):
        picture(number % TOTAL).save(root / "img_align_celeba" / f"{number + 1:06d}.jpg", quality=95)
    four, ten = np.ones((total, 4), int), np.ones((total, 10), int)
    (root / "list_attr_celeba.txt").write_text(table(2 * labels - 1, " ".join(ATTRIBUTES) + " ", 2))
    (root / "list_eval_partition.txt").write_text(table([[part] for part in parts], width=1))
    (root / "identity_CelebA.txt").write_text(table([[number] for number in range(total)], width=1))
    (root / "list_bbox_celeba.txt").write_text(table(four, "image_id x_1 y_1 width height"))
    (root / "list_landmarks_align_celeba.txt").write_text(table(ten, " ".join(f"x{i}" for i in range(10))))
    return root


def take_any_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torchvision knows the checksums of the official lists; those written here differ."""
    monkeypatch.setattr(CelebA, "file_list", [(place, None, name) for place, _, name in CelebA.file_list])
