"""Rows of images with the names of rows and columns beside them."""

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor
from torch.nn.functional import interpolate, pad
from torchvision.utils import make_grid

CELL = 48  # smaller images are enlarged by a whole factor until they reach this
GAP = 2
TEXT = 12


def grid(
    rows: Sequence[Tensor],
    names: Sequence[str] = (),
    columns: Sequence[str] = (),
    title: str = "",
    below: Sequence[str] = (),
) -> Tensor:
    """One row of images below the other; shorter rows are filled up with white.

    Args:
        rows: Images of each row in [0, 1], (S, C, H, W) with C of 1 or 3.
        names: Names of the rows, written to their left.
        columns: Names of the columns, written above them.
        title: First line.
        below: What is written below each column.

    Returns:
        (3, H, W) in [0, 1].
    """
    width = max(len(row) for row in rows)
    cells = torch.cat([pad(row.float().cpu(), (0, 0) * 3 + (0, width - len(row)), value=1.0) for row in rows])
    cells = interpolate(cells, scale_factor=max(1, -(-CELL // min(cells.shape[2:]))), mode="nearest")
    picture: Tensor = make_grid(cells, nrow=width, padding=GAP, pad_value=1).clamp(0, 1)
    return _annotated(picture, (cells.shape[2] + GAP, cells.shape[3] + GAP), names, (columns, below), title)


def stack(pictures: Sequence[Tensor]) -> Tensor:
    """Pictures (3, H, W) one below the other, the narrower ones filled up with white."""
    width = max(picture.shape[2] for picture in pictures)
    return torch.cat([pad(picture, (0, width - picture.shape[2]), value=1.0) for picture in pictures], dim=1)


def _annotated(
    picture: Tensor,
    cell: tuple[int, int],
    names: Sequence[str],
    columns: tuple[Sequence[str], Sequence[str]],
    title: str,
) -> Tensor:
    above, below = columns
    font = ImageFont.load_default(TEXT)
    left = max((int(font.getlength(name)) + 8 for name in names), default=0)
    top = (TEXT + 8) * bool(title) + (TEXT + 6) * bool(above)
    right = max(picture.shape[2] + left, int(font.getlength(title)) + 8)
    canvas = Image.new("RGB", (right, top + picture.shape[1] + (TEXT + 6) * bool(below)), "white")
    pixels = picture.mul(255).round().byte().permute(1, 2, 0).numpy()
    canvas.paste(Image.fromarray(pixels), (left, top))
    draw = ImageDraw.Draw(canvas)
    draw.text((4, 3), title, "black", font)
    for i, name in enumerate(names):
        draw.text((left - 4, top + cell[0] * (i + 0.5)), name, "black", font, anchor="rm")
    for texts, height, anchor in ((above, top - 2, "mb"), (below, top + picture.shape[1] + 2, "mt")):
        # Names that would touch each other are thinned out.
        step = max((-(-(int(font.getlength(name)) + 4) // cell[1]) for name in texts), default=1)
        for i in range(0, len(texts), step):
            draw.text((left + cell[1] * (i + 0.5), height), texts[i], "black", font, anchor=anchor)
    return torch.from_numpy(np.asarray(canvas).copy()).permute(2, 0, 1).float() / 255
