"""Your own image files: find them below a folder, and read them as grey or RGB bytes of one size."""

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image, ImageOps

Fit = Literal["crop", "pad", "stretch"]
Background = Literal["black", "white"]
# EPS starts Ghostscript, a program that runs what is in the file; the others can be named but not decoded.
UNREAD = {"EPS", "BUFR", "GRIB", "HDF5", "MPEG", "WMF"}


@lru_cache
def formats() -> tuple[str, ...]:
    """Formats that Pillow decodes by itself."""
    Image.init()
    return tuple(sorted(set(Image.OPEN) - UNREAD))


def find_pictures(folder: Path) -> list[str]:
    """Image files at any depth below a folder, by suffix, in the same order on every machine.

    Skips files and folders whose names start with a dot.

    Raises:
        FileNotFoundError: There is no folder, or no picture in it.
        ValueError: A link to a folder leads out of it.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"data_dir {folder} is not there: give the folder of your pictures")
    endings = tuple(ending for ending, kind in Image.registered_extensions().items() if kind in formats())
    found = sorted(name for name in _files(folder) if name.lower().endswith(endings))
    if not found:
        raise FileNotFoundError(
            f"data_dir {folder} holds no pictures: put files such as .png or .jpg there, at any depth"
        )
    return found


def _files(folder: Path) -> Iterator[str]:
    home = folder.resolve()
    for at, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in folders:
            path = Path(at, name)
            if path.is_symlink() and not path.resolve().is_relative_to(home):
                raise ValueError(
                    f"{path} is a link that leads out of {folder}: copy the pictures, or give their folder"
                )
        below = Path(at).relative_to(folder)
        yield from ((below / name).as_posix() for name in files if not name.startswith("."))


def prepared(picture: Image.Image, image_shape: tuple[int, int, int], fit: Fit, background: Background) -> Image.Image:
    """Convert an image of any mode and size to grey or RGB bytes of the given size.

    Args:
        picture: The opened image; turned upright by its EXIF orientation.
        image_shape: 1 or 3 channels, height, width.
        fit: "crop" fills the size and cuts the rest, "pad" shows the whole image between bars, "stretch" changes the
            aspect ratio.
        background: Colour of bars and transparent areas.
    """
    channels, height, width = image_shape
    mode, size = "L" if channels == 1 else "RGB", (width, height)
    upright = ImageOps.exif_transpose(picture)
    plain = _opaque(_in_bytes(upright), background).convert(mode)
    if fit == "stretch":
        return plain.resize(size, Image.Resampling.BILINEAR)
    scales = (width / plain.width, height / plain.height)
    if fit == "crop":
        left, top = (plain.width - width / max(scales)) / 2, (plain.height - height / max(scales)) / 2
        middle = (max(left, 0), max(top, 0), plain.width - max(left, 0), plain.height - max(top, 0))
        return plain.resize(size, Image.Resampling.BILINEAR, box=middle)
    sides = (max(round(plain.width * min(scales)), 1), max(round(plain.height * min(scales)), 1))
    canvas = Image.new(mode, size, background)
    canvas.paste(plain.resize(sides, Image.Resampling.BILINEAR), ((width - sides[0]) // 2, (height - sides[1]) // 2))
    return canvas


def _in_bytes(picture: Image.Image) -> Image.Image:
    """A picture of 8 bits a channel: 16 bits lose their lower half; floats must lie in [0, 1].

    Pillow's own conversion would clip 16 bits at 255.
    """
    if picture.mode == "F":
        values = np.asarray(picture) * 255.0
        if not (values.min() >= 0 and values.max() <= 255):  # nor NaN
            raise ValueError("its floats are not in [0, 1]")
        return Image.fromarray(values.round().astype(np.uint8))
    if picture.mode.startswith("I"):
        values = np.asarray(picture)
        if values.min() < 0 or values.max() > 65535:
            raise ValueError("it has more than 16 bits a channel")
        return Image.fromarray((values // 256).astype(np.uint8))
    return picture


def _opaque(picture: Image.Image, background: Background) -> Image.Image:
    """A picture laid on a background where it is transparent."""
    if "A" not in picture.getbands() and "transparency" not in picture.info:
        return picture
    colours = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", colours.size, background), colours)
