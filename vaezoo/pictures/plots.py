"""Plots as pictures, in colours that colour-blind people can tell apart."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

# Okabe & Ito (2008); lines beyond the eighth differ by their dashes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
DASHES = ("-", "--", ":", "-.")


Lines = Mapping[str, tuple[Tensor, Tensor]]


def line_style(number: int) -> dict[str, Any]:
    """Colour and dashes by which a line differs from those before it."""
    dashes = DASHES[number // len(COLOURS) % len(DASHES)]
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": dashes, "linewidth": 1.5}


def curves(
    lines: Lines, title: str, x: str, y: str, targets: Lines | None = None, marks: Sequence[float] = ()
) -> Tensor:
    """Named lines over one axis.

    Args:
        lines: Points (S,) and values (S,) of each line.
        title: Title.
        x: Name of the horizontal axis.
        y: Name of the vertical axis.
        targets: Further lines, grey and dashed, that the others should follow.
        marks: Points of the horizontal axis with a dotted line.
    """
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for i, (name, (points, values)) in enumerate(lines.items()):
        axes.plot(_array(points), _array(values), label=name, **line_style(i))
    for name, (points, values) in (targets or {}).items():
        axes.plot(_array(points), _array(values), "--", color="#777777", label=name, linewidth=2.5, zorder=0)
    for mark in marks:
        axes.axvline(mark, color="#777777", linestyle=":", linewidth=1, zorder=0)
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize="small", frameon=False)
    return _rendered(figure)


def matrix(table: Tensor, rows: Sequence[str], columns: Sequence[str], title: str, signed: bool = False) -> Tensor:
    """A table (R, C) as coloured cells with its numbers in them.

    Args:
        table: Values.
        rows: Names of the rows.
        columns: Names of the columns.
        title: Title.
        signed: Whether colours tell below from above zero.
    """
    values = _array(table)
    figure = Figure(figsize=(2.2 + 0.55 * len(columns), 1.6 + 0.38 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    top = float(np.abs(values).max()) or 1.0
    low = -top if signed else 0.0
    image = axes.imshow(values, cmap="PuOr" if signed else "cividis", vmin=low, vmax=top, aspect="auto")
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="right")
    axes.set_yticks(range(len(rows)), rows)
    axes.set_title(title, fontsize="medium")
    for (i, j), value in np.ndenumerate(values if values.size <= 400 else values[:0]):
        dark = abs(value) > 0.6 * top if signed else value < 0.5 * top
        shown = f"{round(value, 2) + 0.0:.2f}"  # no "-0.00"
        style: Any = {"ha": "center", "va": "center", "fontsize": 7, "color": "white" if dark else "black"}
        axes.text(j, i, shown, in_layout=False, **style)  # it lies within the cells: measuring it takes long
    figure.colorbar(image, ax=axes)
    return _rendered(figure)


def heat_maps(maps: Tensor, names: Sequence[str], title: str, scale: tuple[float, float] | None = None) -> Tensor:
    """Maps (N, H, W) side by side.

    Args:
        maps: Values.
        names: Names of the maps.
        title: Title.
        scale: Values of the first and last colour; None gives each map its own.
    """
    across = min(len(maps), 5)
    down = -(-len(maps) // across)
    figure = Figure(figsize=(2.6 * across + 0.6, 2.4 * down + 0.5), layout="constrained")
    figure.suptitle(title, fontsize="medium")
    low, high = scale or (None, None)
    for i, (values, name) in enumerate(zip(maps, names, strict=True)):
        axes = figure.add_subplot(down, across, i + 1)
        image = axes.imshow(_array(values), cmap="cividis", vmin=low, vmax=high)
        axes.set_title(name, fontsize="small")
        axes.set_xticks([])
        axes.set_yticks([])
        if scale is None:
            figure.colorbar(image, ax=axes, fraction=0.046)
    if scale is not None:
        figure.colorbar(image, ax=figure.axes, fraction=0.046)
    return _rendered(figure)


def _array(values: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return values.detach().double().cpu().numpy()


def _rendered(figure: Figure) -> Tensor:
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()  # once; saving a file would draw twice
    pixels = np.asarray(canvas.buffer_rgba())[..., :3].copy()
    return torch.from_numpy(pixels).permute(2, 0, 1).float() / 255
