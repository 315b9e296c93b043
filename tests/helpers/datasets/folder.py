"""Folders of pictures such as a user brings: disks of a size and a colour, and a table of both."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

COLOURS = {"blue": (0, 0, 255), "green": (0, 255, 0), "red": (255, 0, 0)}
Row = tuple[str, float | None, str]


def write(folder: Path, total: int = 12, height: int = 40, width: int = 48) -> list[Row]:
    """Write pictures 000.png and so on; return their rows of a table: name, size and colour."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for i in range(total):
        radius, colour = 4 + 10 * i / max(total - 1, 1), sorted(COLOURS)[i % 3]
        rows.append((f"{i:03d}.png", round(radius, 3), colour))
        disk(height, width, radius, colour).save(folder / rows[-1][0])
    return rows


def disk(height: int, width: int, radius: float, colour: str) -> Image.Image:
    y, x = np.mgrid[:height, :width]
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[(y - height / 2) ** 2 + (x - width / 2) ** 2 < radius**2] = COLOURS[colour]
    return Image.fromarray(pixels)


def table(path: Path, rows: Sequence[Sequence[object]], header: Sequence[str] = ("file", "size", "colour")) -> Path:
    """Write a CSV file; None is an empty cell."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path
