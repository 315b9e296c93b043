"""Pictures as data URIs, small enough for a page that holds many."""

import base64
import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from torch import Tensor


@dataclass
class Picture:
    """A picture of the page.

    Attributes:
        name: What it shows.
        src: Data URI.
        width: Pixels.
        height: Pixels.
    """

    name: str
    src: str
    width: int
    height: int


def from_file(file: Path, side: int) -> Picture:
    """A picture from a file, no side longer than `side` pixels."""
    with Image.open(file, formats=["PNG"]) as opened:
        image = opened.convert("RGB")
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return _picture(file.stem, image)


def from_tensors(name: str, rows: list[Tensor], side: int, gap: int = 0) -> Picture:
    """A grid of images.

    Args:
        name: What it shows.
        rows: Images in [0, 1] of each row, (N, C, H, W).
        side: Longest side of one image, in pixels.
        gap: White pixels between images.
    """
    tiles = [[_tile(image, side) for image in row] for row in rows]
    width, height = tiles[0][0].size
    size = (len(tiles[0]) * (width + gap) - gap, len(tiles) * (height + gap) - gap)
    grid = Image.new("RGB", size, "white")
    for i, row in enumerate(tiles):
        for j, tile in enumerate(row):
            grid.paste(tile, (j * (width + gap), i * (height + gap)))
    return _picture(name, grid)


def _tile(image: Tensor, side: int) -> Image.Image:
    """One image (C, H, W); one channel is grey, of two or more than three the first is shown."""
    pixels = image.detach().float().cpu().nan_to_num(0).clamp(0, 1).mul(255).round().byte()
    pixels = pixels if len(pixels) == 3 else pixels[:1].expand(3, -1, -1)
    tile = Image.fromarray(pixels.permute(1, 2, 0).contiguous().numpy())
    tile.thumbnail((side, side), Image.Resampling.LANCZOS)
    return tile


def _picture(name: str, image: Image.Image) -> Picture:
    """As PNG or JPEG, whichever is smaller: flat matrices and sprites against shaded scenes."""
    encoded = {}
    options: dict[str, dict[str, int]] = {"png": {}, "jpeg": {"quality": 80, "subsampling": 0}}  # colours stay sharp
    for kind, chosen in options.items():
        file = io.BytesIO()
        image.save(file, kind, **chosen)
        encoded[kind] = file.getvalue()
    kind = min(encoded, key=lambda kind: len(encoded[kind]))
    src = f"data:image/{kind};base64,{base64.b64encode(encoded[kind]).decode()}"
    return Picture(name, src, *image.size)
