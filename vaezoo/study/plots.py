"""A study's results as figures: scores with error bars over the axes of its grid, and score against score."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vaezoo.metrics.catalogue import DETAIL, METRICS, higher_is_better
from vaezoo.pictures.plots import line_style
from vaezoo.runs.files import atomic_write
from vaezoo.study.columns import FACTS
from vaezoo.study.plot_section import Plot, Scale
from vaezoo.study.points import Lines, Point, Record, plot_points, read_results, varying

WIDE = 30.0  # largest over smallest value from which numbers ask for a logarithmic scale
MOST_TICKS = 16  # values of an axis that are all named
ACROSS = 3  # panels side by side


def draw_plots(
    output: Path, title: str, plots: Sequence[Plot], axes: Sequence[str], scores: Sequence[str] = ()
) -> tuple[list[Path], list[str]]:
    """Draw plots from `results.csv` into `plots/`, as PNG and PDF.

    Args:
        output: Folder of the study.
        title: First words of the titles.
        plots: What is drawn; where empty, every score over every axis that varies.
        axes: Axes of the study by short name, `config` among them.
        scores: Scores of the default plots; all that are no detail where empty.

    Returns:
        The files, and what could not be drawn and why.
    """
    records = read_results(output / "results.csv")
    written: list[Path] = []
    missing = []
    for plot in plots or default_plots(records, axes, scores):
        panels = plot_points(plot, records, axes)
        if not panels:
            missing.append(f"{plot.stem}: no finished run has both {plot.x} and {plot.y}")
            continue
        drawn = figure(plot, panels, title, over_axis=plot.x in axes)
        for suffix in ("png", "pdf"):
            path = output / "plots" / f"{plot.stem}.{suffix}"
            with atomic_write(path) as draft:
                drawn.savefig(draft, format=suffix, dpi=150)
            written.append(path)
    return written, missing


def default_plots(records: Sequence[Record], axes: Sequence[str], scores: Sequence[str] = ()) -> list[Plot]:
    """Every score over every axis that varies; over configurations where no other axis does."""
    columns = list(records[0]) if records else []
    found = columns[columns.index(FACTS[-1]) + 1 :] if FACTS[-1] in columns else []
    shown = [name for name in found if (name in scores if scores else name in METRICS or not DETAIL.search(name))]
    several = varying(records, axes)
    return [Plot(axis, score) for score in shown for axis in [a for a in several if a != "config"] or several]


def figure(plot: Plot, panels: Mapping[str, Lines], title: str, over_axis: bool) -> Figure:
    """Draw points.

    Args:
        plot: What they are of.
        panels: Points by panel and line.
        title: First words of the title.
        over_axis: Whether x is an axis of the grid, and lines join the points.
    """
    across = min(len(panels), ACROSS)
    down = -(-len(panels) // across)
    drawn = Figure(figsize=(2.0 + 3.6 * across, 1.4 + 2.6 * down), layout="constrained")
    grid = drawn.subplots(down, across, squeeze=False).flatten()
    points = [point for lines in panels.values() for line in lines.values() for point in line]
    scale = plot.scale or fitting_scale([point.x for point in points])
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    values = _values(points)
    for axes, (panel, lines) in zip(grid, panels.items(), strict=False):
        for name, line in lines.items():
            _draw_line(axes, line, names.index(name), name, scale, values, over_axis)
        _finish(axes, plot, panel, scale, values if over_axis else ())
    for axes in grid[len(panels) :]:
        axes.remove()
    drawn.suptitle(f"{title}\n{plot.y}{_direction(plot.y)} · {caption(points)}", fontsize="medium")
    if names != [""]:
        legend = {
            label: handle
            for axes in drawn.axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        drawn.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=across + 1, fontsize="small")
    return drawn


def caption(points: Sequence[Point]) -> str:
    """Over how many seeds, and whether there is more than one point to compare."""
    least, most = min(point.seeds for point in points), max(point.seeds for point in points)
    seeds = f"{most} seeds" if least == most else f"{least} to {most} seeds"
    said = "one seed, no error bars" if most == 1 else f"mean ± std over {seeds}"
    return f"{said}, a single point" if len(points) == 1 else said


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
