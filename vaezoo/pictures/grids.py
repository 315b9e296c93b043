"""Rows of images with the names of rows and columns beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.figure import FigureBase
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor
from torch.nn.functional import interpolate, pad
from torchvision.utils import make_grid

from vaezoo.pictures.picture import PIXELS_PER_INCH, POINTS_PER_INCH, TEXT, Picture, text_width, wrapped

CELL = 48  # smaller images are enlarged by a whole factor until they reach this
GAP = 2
LETTERS = 12  # pixels
LINE = 1.5 * TEXT / POINTS_PER_INCH  # inches
SPACE = 4 / POINTS_PER_INCH  # between names and images
MOST_NAMES = 0.45  # of the width
MOST_PIXELS = 60_000_000


@dataclass(frozen=True)
class Grid(Picture):
    """One row of images below the other; shorter rows are filled up with white.

    Attributes:
        title: First line.
        names: Names of the rows, written to their left.
        images: The images with a gap between them, (3, H, W) in [0, 1].
        cell: Height and width of an image and its gap in pixels.
        columns: Names of the columns, written above them.
        below: What is written below each column.
    """

    images: Tensor
    cell: tuple[int, int]
    columns: Sequence[str]
    below: Sequence[str]

    def pixels(self) -> Tensor:
        """Drawn with few pixels and fast, as training waits for it."""
        font = ImageFont.load_default(LETTERS)
        left = max((int(font.getlength(name)) + 8 for name in self.names), default=0)
        top = (LETTERS + 8) * bool(self.title) + (LETTERS + 6) * bool(self.columns)
        right = max(self.images.shape[2] + left, int(font.getlength(self.title)) + 8)
        bottom = top + self.images.shape[1]
        canvas = Image.new("RGB", (right, bottom + (LETTERS + 6) * bool(self.below)), "white")
        canvas.paste(Image.fromarray(_bytes(self.images)), (left, top))
        draw = ImageDraw.Draw(canvas)
        draw.text((4, 3), self.title, "black", font)
        for i, name in enumerate(self.names):
            draw.text((left - 4, top + self.cell[0] * (i + 0.5)), name, "black", font, anchor="rm")
        for texts, height, anchor in ((self.columns, top - 2, "mb"), (self.below, bottom + 2, "mt")):
            widths = [int(font.getlength(name)) + 4 for name in texts]
            for i in _thinned(widths, self.cell[1]):
                draw.text((left + self.cell[1] * (i + 0.5), height), texts[i], "black", font, anchor=anchor)
        return torch.from_numpy(np.asarray(canvas).copy()).permute(2, 0, 1).float() / 255

    def width(self) -> float:
        """Inches of images and names."""
        return self.images.shape[2] / PIXELS_PER_INCH + _names_width(self.names, TEXT)

    def height(self, width: float) -> float:
        """Inches of title, names of columns, and images as wide as the names of rows leave room for."""
        return self._places(width).height

    def paint(self, figure: FigureBase, width: float, dpi: int) -> None:
        """One raster image, never smoothed, with text around it."""
        at = self._places(width)
        rows, columns = self.images.shape[1:]
        across = (width - at.left) / width
        axes = figure.add_axes((at.left / width, at.bottom / at.height, across, at.images / at.height))
        factor = max(1, min(-(-int(dpi * (width - at.left)) // columns), int((MOST_PIXELS / rows / columns) ** 0.5)))
        sharp = _bytes(self.images).repeat(factor, 0).repeat(factor, 1)
        axes.imshow(sharp, extent=(0, columns, rows, 0), interpolation="none", aspect="auto")
        axes.set_axis_off()
        style: dict[str, Any] = {"fontsize": at.size, "textcoords": "offset points", "annotation_clip": False}
        for i, name in enumerate(self.names):
            place = 0, self.cell[0] * (i + 0.5) + GAP / 2
            axes.annotate(name, place, (-SPACE * POINTS_PER_INCH, 0), ha="right", va="center", **style)
        each = self.cell[1] * (width - at.left) / columns
        for texts, edge, offset, side in ((self.columns, 0, 2, "bottom"), (self.below, rows, -2, "top")):
            widths = [text_width(name, at.size) + SPACE for name in texts]
            for i in _thinned(widths, each):
                # A name wider than its column would leave the figure beside the last one.
                last = self.cell[1] * (i + 1) + GAP >= columns and widths[i] > each
                x, anchor = (columns, "right") if last else (self.cell[1] * (i + 0.5) + GAP / 2, "center")
                axes.annotate(texts[i], (x, edge), (0, offset), ha=anchor, va=side, **style)
        x, y = 0.5 * SPACE / width, 1 - 0.5 * SPACE / at.height
        figure.text(x, y, at.title, fontsize=TEXT, ha="left", va="top", parse_math=False)

    def _places(self, width: float) -> "_Places":
        left, most = _names_width(self.names, TEXT), MOST_NAMES * width
        size = TEXT if left <= most else TEXT * (most - 1.5 * SPACE) / (left - 1.5 * SPACE)
        left = min(left, most)
        title = wrapped(self.title, width - SPACE) if self.title else ""
        images = self.images.shape[1] * (width - left) / self.images.shape[2]
        top = LINE * (len(title.splitlines()) + bool(self.columns)) + 0.5 * SPACE * bool(title)
        bottom = LINE * bool(self.below)
        return _Places(left, bottom, images, bottom + images + top, size, title)


class _Places(NamedTuple):
    """Where things are, in inches: the images from the left and from the bottom, and how high they and all are."""

    left: float
    bottom: float
    images: float
    height: float
    size: float
    title: str


def grid(
    rows: Sequence[Tensor],
    names: Sequence[str] = (),
    columns: Sequence[str] = (),
    title: str = "",
    below: Sequence[str] = (),
) -> Grid:
    """One row of images below the other.

    Args:
        rows: Images of each row in [0, 1], (S, C, H, W) with C of 1 or 3.
        names: Names of the rows, written to their left.
        columns: Names of the columns, written above them.
        title: First line.
        below: What is written below each column.
    """
    width = max(len(row) for row in rows)
    cells = torch.cat([pad(row.float().cpu(), (0, 0) * 3 + (0, width - len(row)), value=1.0) for row in rows])
    cells = interpolate(cells, scale_factor=max(1, -(-CELL // min(cells.shape[2:]))), mode="nearest")
    images: Tensor = make_grid(cells, nrow=width, padding=GAP, pad_value=1).clamp(0, 1)
    return Grid(title, tuple(names), images, (cells.shape[2] + GAP, cells.shape[3] + GAP), columns, below)


def _names_width(names: Sequence[str], size: float) -> float:
    return max((text_width(name, size) + 1.5 * SPACE for name in names), default=0.0)


def _thinned(widths: Sequence[float], cell: float) -> range:
    """Which names stand where all of them would touch each other."""
    return range(0, len(widths), max((int(-(-width // cell)) for width in widths), default=1))


def _bytes(images: Tensor) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] = images.mul(255).round().byte().permute(1, 2, 0).numpy()
    return pixels
