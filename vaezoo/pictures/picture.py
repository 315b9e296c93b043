"""What is drawn, before it is pixels or a page: each picture knows its pixels, and how to paint itself at any width."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase
from PIL import Image
from torch import Tensor
from torch.nn.functional import pad

POINTS_PER_INCH = 72
PIXELS_PER_INCH = 100  # of pictures at their own size
SHARP = 600  # pixels an inch at which letters are as wide as in print
TEXT = 8.0  # points: what journals set in figures


@dataclass(frozen=True)
class Picture:
    """Something to look at, with a title and named rows.

    Attributes:
        title: First line; none where empty.
        names: Names of its rows, lines or maps.
    """

    title: str
    names: Sequence[str]

    @property
    def parts(self) -> "tuple[Picture, ...]":
        """What stands one below the other, from the top."""
        return (self,)

    def pixels(self) -> Tensor:
        """(3, H, W) in [0, 1], at its own size: what PNG files and loggers take."""
        raise NotImplementedError

    def _repr_png_(self) -> bytes:
        """What a notebook shows: the pixels."""
        file = BytesIO()
        pixels = self.pixels().mul(255).round().byte().permute(1, 2, 0).numpy()
        Image.fromarray(pixels).save(file, "PNG", optimize=True)
        return file.getvalue()

    def width(self) -> float:
        """Inches of its own size."""
        raise NotImplementedError

    def height(self, width: float) -> float:
        """Inches at a width in inches."""
        raise NotImplementedError

    def paint(self, figure: FigureBase, width: float, dpi: int) -> None:
        """Draw onto an empty figure of this width, with text as text.

        Args:
            figure: The figure, `height(width)` high.
            width: Inches.
            dpi: Pixels an inch that images have at least.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Stack(Picture):
    """Pictures one below the other; titles and names are those of the parts."""

    below: tuple[Picture, ...]

    @property
    def parts(self) -> tuple[Picture, ...]:
        """All parts, those of the parts included."""
        return tuple(part for picture in self.below for part in picture.parts)

    def pixels(self) -> Tensor:
        """The narrower ones are filled up with white."""
        drawn = [part.pixels() for part in self.parts]
        width = max(part.shape[2] for part in drawn)
        return torch.cat([pad(part, (0, width - part.shape[2]), value=1.0) for part in drawn], dim=1)

    def width(self) -> float:
        """The widest part's."""
        return max(part.width() for part in self.parts)

    def height(self, width: float) -> float:
        """All parts at this width."""
        return sum(part.height(width) for part in self.parts)


@dataclass(frozen=True)
class Animation:
    """Frames (T, 3, H, W) in [0, 1]."""

    frames: Tensor


Figures = dict[str, Picture | Animation]
"""What a command draws: pictures by the names of their files without a suffix, animations by theirs with it."""


def stack(pictures: Sequence[Picture]) -> Picture:
    """Pictures one below the other."""
    return pictures[0] if len(pictures) == 1 else Stack("", (), tuple(pictures))


def renamed(picture: Picture, title: bool, names: Sequence[str]) -> Picture:
    """The same with other row names, and without its titles where they are not wanted.

    Args:
        picture: A picture.
        title: Whether it keeps its titles.
        names: Names of all its rows, from the top.
    """
    rest, parts = list(names), []
    for part in picture.parts:
        own, rest = rest[: len(part.names)], rest[len(part.names) :]
        parts.append(replace(part, title=part.title if title else "", names=own))
    return stack(parts)


def text_width(text: str, size: float = TEXT) -> float:
    """Inches of a line of text, `$…$` set as math."""
    figure = Figure(figsize=(0.1, 0.1), dpi=SHARP)  # all its pixels are made to measure in; a text may be wider
    FigureCanvasAgg(figure)
    return float(figure.text(0, 0, text, fontsize=size).get_window_extent().width) / SHARP


def wrapped(text: str, width: float, size: float = TEXT) -> str:
    """A text in lines that are no wider than some inches; a word that is wider is broken."""

    def fits(line: str) -> bool:
        return len(line) < 2 or text_width(line.replace("$", r"\$"), size) <= width

    lines: list[str] = []
    for line in text.splitlines():
        now, *words = line.split(" ")
        for word in words:
            longer = f"{now} {word}"
            if not fits(longer):
                lines.append(now)
                longer = word
            now = longer
        lines.append(now)
    return "\n".join(part for line in lines for part in _broken(line, fits))


def _broken(line: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """As many characters a line as fit."""
    while not fits(line):
        end = next(end for end in range(len(line) - 1, 0, -1) if fits(line[:end]))
        yield line[:end]
        line = line[end:]
    yield line
