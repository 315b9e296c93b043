"""A small CelebA in torchvision's layout."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
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
        f"{name} {' '.join(f'{value:>{width}}' for value in row)}\n" for name, row in zip(NAMES, rows, strict=True)
    ]
    return (f"{len(NAMES)}\n{header}\n" if header else "") + "".join(lines)


def write(folder: Path) -> Path:
    """The lists as they are published: a count and names above some, several blanks between numbers."""
    root = folder / "celeba"
    (root / "img_align_celeba").mkdir(parents=True)
    for number, name in enumerate(NAMES):
        picture(number).save(root / "img_align_celeba" / name, quality=95)
    four, ten = np.ones((TOTAL, 4), int), np.ones((TOTAL, 10), int)
    (root / "list_attr_celeba.txt").write_text(table(2 * LABELS - 1, " ".join(ATTRIBUTES) + " ", 2))
    (root / "list_eval_partition.txt").write_text(table([[part] for part in PARTS], width=1))
    (root / "identity_CelebA.txt").write_text(table([[number] for number in range(TOTAL)], width=1))
    (root / "list_bbox_celeba.txt").write_text(table(four, "image_id x_1 y_1 width height"))
    (root / "list_landmarks_align_celeba.txt").write_text(table(ten, " ".join(f"x{i}" for i in range(10))))
    return root


def take_any_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torchvision knows the checksums of the official lists; those written here differ."""
    monkeypatch.setattr(CelebA, "file_list", [(place, None, name) for place, _, name in CelebA.file_list])
