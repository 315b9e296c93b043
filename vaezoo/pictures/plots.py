"""Plots as pictures, in colours that colour-blind people can tell apart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase
from matplotlib.font_manager import FontProperties
from torch import Tensor

from vaezoo.pictures.picture import PIXELS_PER_INCH, Picture, wrapped

# Okabe & Ito (2008); lines beyond the eighth differ by their dashes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
DASHES = ("-", "--", ":", "-.")
CELL_TEXT, LEAST_TEXT = 7.0, 3.5  # points of the numbers in a table at its own size, and of those that can be read


Lines = Mapping[str, tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Plot(Picture):
    """A plot by matplotlib.

    Attributes:
        title: Title.
        names: Names of its lines, rows or maps.
        size: Width and height in inches.
        draw: Draws onto a figure, with these names and in a width of as many times `size`.
    """

    size: tuple[float, float]
    draw: Callable[[FigureBase, Sequence[str], float], None]

    def pixels(self) -> Tensor:
        """Drawn once; saving a file would draw twice."""
        figure = Figure(figsize=self.size, layout="constrained", dpi=PIXELS_PER_INCH)
        canvas: Any = FigureCanvasAgg(figure)
        self.paint(figure, self.width(), PIXELS_PER_INCH)
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[..., :3].copy()
        return torch.from_numpy(pixels).permute(2, 0, 1).float() / 255

    def width(self) -> float:
        """The size's."""
        return self.size[0]

    def height(self, width: float) -> float:
        """In the shape of its own size."""
        return self.size[1] * width / self.size[0]

    def paint(self, figure: FigureBase, width: float, dpi: int) -> None:
        """The plot below its title."""
        if self.title:
            size = FontProperties(size="medium").get_size_in_points()
            figure.suptitle(wrapped(self.title, width, size), fontsize=size, parse_math=False)
        self.draw(figure, self.names, width / self.size[0])


def line_style(number: int) -> dict[str, Any]:
    """Colour and dashes by which a line differs from those before it."""
    dashes = DASHES[number // len(COLOURS) % len(DASHES)]
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": dashes, "linewidth": 1.5}


def note_single_point(axes: Axes) -> None:
    """Say that there is nothing to compare: a lone point looks like a plot that failed."""
    axes.text(0.5, 0.97, "a single point", transform=axes.transAxes, ha="center", va="top", fontsize="small")


def curves(lines: Lines, title: str, x: str, y: str, targets: Lines | None = None, marks: Sequence[float] = ()) -> Plot:
    """Named lines over one axis; a line of one point is a dot.

    Args:
        lines: Points (S,) and values (S,) of each line.
        title: Title.
        x: Name of the horizontal axis.
        y: Name of the vertical axis.
        targets: Further lines, grey and dashed, that the others should follow.
        marks: Points of the horizontal axis with a dotted line.
    """

    def draw(figure: FigureBase, names: Sequence[str], scale: float) -> None:
        axes = figure.add_subplot()
        for i, (name, (points, values)) in enumerate(zip(names, lines.values(), strict=True)):
            dot = "o" if len(points) == 1 else ""
            axes.plot(_array(points), _array(values), label=name, marker=dot, **line_style(i))
        for name, (points, values) in (targets or {}).items():
            dot = "o" if len(points) == 1 else ""
            style: dict[str, Any] = {"color": "#777777", "linestyle": "--", "linewidth": 2.5, "zorder": 0}
            axes.plot(_array(points), _array(values), label=name, marker=dot, **style)
        for mark in marks:
            axes.axvline(mark, color="#777777", linestyle=":", linewidth=1, zorder=0)
        if all(len(points) == 1 for points, _ in lines.values()):
            note_single_point(axes)
        axes.set(xlabel=x, ylabel=y)
        axes.grid(alpha=0.3)
        beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1), "borderaxespad": 0}
        axes.legend(fontsize="small", frameon=False, **beside)

    return Plot(title, tuple(lines), (7.2, 4.2), draw)


def matrix(table: Tensor, rows: Sequence[str], columns: Sequence[str], title: str, signed: bool = False) -> Plot:
    """A table (R, C) as coloured cells with its numbers in them.

    Args:
        table: Values.
        rows: Names of the rows.
        columns: Names of the columns.
        title: Title.
        signed: Whether colours tell below from above zero.
    """
    values = _array(table)
    top = float(np.abs(values).max()) or 1.0
    low = -top if signed else 0.0

    def draw(figure: FigureBase, names: Sequence[str], scale: float) -> None:
        axes = figure.add_subplot()
        image = axes.imshow(values, cmap="PuOr" if signed else "cividis", vmin=low, vmax=top, aspect="auto")
        axes.set_xticks(range(len(columns)), columns, rotation=45, ha="right")
        axes.set_yticks(range(len(names)), names)
        size = CELL_TEXT * min(1.0, scale)
        for (i, j), value in np.ndenumerate(values if values.size <= 400 and size >= LEAST_TEXT else values[:0]):
            dark = abs(value) > 0.6 * top if signed else value < 0.5 * top
            shown = f"{round(value, 2) + 0.0:.2f}"  # no "-0.00"
            style: Any = {"ha": "center", "va": "center", "fontsize": size, "color": "white" if dark else "black"}
            axes.text(j, i, shown, in_layout=False, **style)  # it lies within the cells: measuring it takes long
        figure.colorbar(image, ax=axes)

    return Plot(title, tuple(rows), (2.2 + 0.55 * len(columns), 1.6 + 0.38 * len(rows)), draw)


def heat_maps(maps: Tensor, names: Sequence[str], title: str, scale: tuple[float, float] | None = None) -> Plot:
    """Maps (N, H, W) side by side.

    Args:
        maps: Values.
        names: Names of the maps.
        title: Title.
        scale: Values of the first and last colour; None gives each map its own.
    """
    across = min(len(maps), 5)
    down = -(-len(maps) // across)
    low, high = scale or (None, None)

    def draw(figure: FigureBase, names: Sequence[str], times: float) -> None:
        every: list[Axes] = []
        for i, (values, name) in enumerate(zip(maps, names, strict=True)):
            axes = figure.add_subplot(down, across, i + 1)
            every.append(axes)
            image = axes.imshow(_array(values), cmap="cividis", vmin=low, vmax=high)
            axes.set_title(name, fontsize="small")
            axes.set_xticks([])
            axes.set_yticks([])
            if scale is None:
                figure.colorbar(image, ax=axes, fraction=0.046)
        if scale is not None:
            figure.colorbar(image, ax=every, fraction=0.046)

    return Plot(title, tuple(names), (2.6 * across + 0.6, 2.4 * down + 0.5), draw)


def _array(values: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return values.detach().double().cpu().numpy()
