"""A study's results as figures: scores with error bars over the axes of its grid, and score against score."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from vaezoo.metrics.catalogue import DETAIL, METRICS, higher_is_better
from vaezoo.pictures import plots as pictures
from vaezoo.pictures.figures import Style
from vaezoo.pictures.picture import Figures
from vaezoo.pictures.plots import line_style, note_single_point
from vaezoo.study.columns import FACTS
from vaezoo.study.plot_section import Plot, Scale
from vaezoo.study.points import Lines, Point, Record, plot_points, read_results, varying

WIDE = 30.0  # largest over smallest value from which numbers ask for a logarithmic scale
MOST_TICKS = 16  # values of an axis that are all named
ACROSS = 3  # panels side by side
STYLE = Style(formats=("png", "pdf"), dpi=150)
"""How plots look by default."""


def draw_plots(
    output: Path,
    title: str,
    plots: Sequence[Plot],
    axes: Sequence[str],
    scores: Sequence[str] = (),
    style: Style = STYLE,
) -> tuple[list[Path], list[str]]:
    """Draw plots from `results.csv` into `plots/`.

    Args:
        output: Folder of the study.
        title: First words of the titles.
        plots: What is drawn; where empty, every score over every axis that varies.
        axes: Axes of the study by short name, `config` among them.
        scores: Scores of the default plots; all that are no detail where empty.
        style: How they look.

    Returns:
        The files, and what could not be drawn and why.
    """
    records = read_results(output / "results.csv")
    drawn: Figures = {}
    missing = []
    for plot in plots or default_plots(records, axes, scores):
        panels = plot_points(plot, records, axes)
        if not panels:
            missing.append(f"{plot.stem}: no finished run has both {plot.x} and {plot.y}")
            continue
        drawn[plot.stem] = figure(plot, panels, title, over_axis=plot.x in axes)
    return style.save(drawn, output / "plots"), missing


def default_plots(records: Sequence[Record], axes: Sequence[str], scores: Sequence[str] = ()) -> list[Plot]:
    """Every score over every axis that varies; over configurations where no other axis does."""
    columns = list(records[0]) if records else []
    found = columns[columns.index(FACTS[-1]) + 1 :] if FACTS[-1] in columns else []
    shown = [name for name in found if (name in scores if scores else name in METRICS or not DETAIL.search(name))]
    several = varying(records, axes)
    return [Plot(axis, score) for score in shown for axis in [a for a in several if a != "config"] or several]


def figure(plot: Plot, panels: Mapping[str, Lines], title: str, over_axis: bool) -> pictures.Plot:
    """Draw points.

    Args:
        plot: What they are of.
        panels: Points by panel and line.
        title: First words of the title.
        over_axis: Whether x is an axis of the grid, and lines join the points.
    """
    across = min(len(panels), ACROSS)
    down = -(-len(panels) // across)
    points = [point for lines in panels.values() for line in lines.values() for point in line]
    scale = plot.scale or fitting_scale([point.x for point in points])
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    values = _values(points)

    def draw(drawn: FigureBase, shown: Sequence[str], times: float) -> None:
        grid = drawn.subplots(down, across, squeeze=False).flatten()
        for axes, (panel, lines) in zip(grid, panels.items(), strict=False):
            for name, line in lines.items():
                number = names.index(name)
                _draw_line(axes, line, number, shown[number], scale, values, over_axis)
            _finish(axes, plot, panel, scale, values if over_axis else ())
            if sum(map(len, lines.values())) == 1:
                note_single_point(axes)
        for axes in grid[len(panels) :]:
            axes.remove()
        if names != [""]:
            _add_legend(drawn, grid[: len(panels)], across + 1 if times > 0.7 else across)

    said = f"{title}\n{plot.y}{_direction(plot.y)} · {caption(points)}"
    return pictures.Plot(said, tuple(names), (2.0 + 3.6 * across, 1.4 + 2.6 * down), draw)


def caption(points: Sequence[Point]) -> str:
    """Over how many seeds."""
    least, most = min(point.seeds for point in points), max(point.seeds for point in points)
    seeds = f"{most} seeds" if least == most else f"{least} to {most} seeds"
    return "one seed, no error bars" if most == 1 else f"mean ± std over {seeds}"


def _add_legend(drawn: FigureBase, panels: Iterable[Axes], columns: int) -> None:
    """One for all panels, each line once."""
    found = [axes.get_legend_handles_labels() for axes in panels]
    legend = {label: handle for handles, labels in found for handle, label in zip(handles, labels, strict=True)}
    drawn.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=columns, fontsize="small")


def fitting_scale(values: Sequence[float | str]) -> Scale:
    """Categories for text, and for 0 beside numbers far apart; logarithmic for positive numbers far apart."""
    numbers = [value for value in values if isinstance(value, float)]
    if len(numbers) < len(values):
        return "categorical"
    positive = [value for value in numbers if value > 0]
    if len(set(positive)) < 3 or max(positive) < WIDE * min(positive):
        return "linear"
    return "log" if len(positive) == len(numbers) else "categorical"


def _draw_line(
    axes: Axes, line: Sequence[Point], number: int, name: str, scale: Scale, values: list[float | str], joined: bool
) -> None:
    x = [values.index(point.x) if scale == "categorical" else point.x for point in line]
    style = line_style(number)
    style["linestyle"] = style["linestyle"] if joined else "none"
    y, y_bars, x_bars = [p.y for p in line], _bars([p.y_std for p in line]), _bars([p.x_std for p in line])
    axes.errorbar(x, y, yerr=y_bars, xerr=x_bars, marker="o", markersize=4, capsize=3, label=name, **style)
    for place, point in zip(x, line, strict=True):
        axes.annotate(point.label, (place, point.y), (4, 4), textcoords="offset points", fontsize=7)


def _bars(spread: Sequence[float | None]) -> list[float] | None:
    """Lengths of error bars; NaN draws a point without one, as a single seed has no spread."""
    lengths = [float("nan") if std is None else std for std in spread]
    return None if all(map(math.isnan, lengths)) else lengths


def _finish(axes: Axes, plot: Plot, panel: str, scale: Scale, values: Sequence[float | str]) -> None:
    """Names, and ticks at the values of an axis of the grid."""
    axes.set(title=panel, xlabel=plot.x, ylabel=plot.y)
    axes.title.set_fontsize("medium")
    axes.grid(alpha=0.3)
    axes.margins(0.08)  # room for labels
    if scale == "log":
        axes.set_xscale("log")
    if not values or len(values) > MOST_TICKS:
        return
    shown = [value if isinstance(value, str) else f"{value:g}" for value in values]
    places = list(range(len(values))) if scale == "categorical" else values
    axes.set_xticks(places, shown, rotation=30 if max(map(len, shown)) > 6 else 0)
    axes.minorticks_off()


def _values(points: Sequence[Point]) -> list[float | str]:
    """Values of x: numbers in their order, then text as it comes."""
    numbers = sorted({point.x for point in points if isinstance(point.x, float)})
    return [*numbers, *dict.fromkeys(point.x for point in points if isinstance(point.x, str))]


def _direction(score: str) -> str:
    metrics = [metric for metric in METRICS if score == metric or score.startswith((f"{metric}_", f"{metric}["))]
    better = higher_is_better(max(metrics, key=len)) if metrics else None
    return {True: " (higher is better)", False: " (lower is better)", None: ""}[better]
