"""The section `plots` of a study's file, checked."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from vaezoo.study.checks import known, mapping, names

Scale = Literal["linear", "log", "categorical"]
KEYS = ("name", "x", "y", "by", "panels", "only", "scale")


@dataclass(frozen=True)
class Plot:
    """One figure of a study.

    Attributes:
        x: An axis of the grid, `config`, or a score; over a score, each point is labelled with its place in the grid.
        y: A score.
        by: Axes with one line per value. Defaults to every other axis that varies.
        panels: Axes with one panel per value.
        only: Patterns of places in the grid to draw, as in a budget. Empty means all.
        scale: Scale of x. Defaults to one that suits its values.
        name: Name of the files.
    """

    x: str
    y: str
    by: tuple[str, ...] | None = None
    panels: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    scale: Scale | None = None
    name: str = ""

    @property
    def stem(self) -> str:
        """Name of its files, without a suffix."""
        return self.name or f"{self.y}_over_{self.x}"


def read_plots(given: Any) -> tuple[Plot, ...]:
    """Plots from plain data.

    Raises:
        ValueError: Something in it is wrong; the message says where.
    """
    if given is None:
        return ()
    if not isinstance(given, list):
        raise ValueError(f"plots: expected a list, such as [{{x: tau, y: mig_20}}], got {given!r}")
    plots = tuple(_plot(item, f"plots[{i}]") for i, item in enumerate(given))
    for i, plot in enumerate(plots):
        if plot.stem in [other.stem for other in plots[:i]]:
            raise ValueError(f"plots[{i}]: another plot is called {plot.stem!r} too: give it a name")
    return plots


def check_plots(plots: Iterable[Plot], axes: Collection[str], metrics: Collection[str]) -> None:
    """Raise ValueError for a plot of what the study neither varies nor scores.

    Args:
        plots: The plots.
        axes: Short names of all axes, `config` among them.
        metrics: Metrics that the study asks for; empty where it takes what fits.
    """
    there = f"there are {', '.join(axes)}"
    for i, plot in enumerate(plots):
        for key, columns in {"by": plot.by or (), "panels": plot.panels}.items():
            if missing := [column for column in columns if column not in axes]:
                raise ValueError(f"plots[{i}].{key}: no axis is called {missing[0]!r}, {there}")
        scored = [name for name in (plot.x, plot.y) if name not in axes]
        if plot.y in axes:
            raise ValueError(f"plots[{i}].y: {plot.y!r} is an axis; y is a score")
        for name in scored if metrics else ():
            if not any(name == metric or name.startswith(f"{metric}_") for metric in metrics):
                what = f"axis ({there}) or score" if name == plot.x else "score"
                raise ValueError(f"plots[{i}]: {name!r} is no {what} (evaluate.metrics asks for {', '.join(metrics)})")


def _plot(given: Any, where: str) -> Plot:
    plot = mapping(given, where)
    known(plot, KEYS, where)
    for key in ("x", "y"):
        if not isinstance(plot.get(key), str):
            raise ValueError(f"{where}: needs x and y, an axis or a score each, for example {{x: tau, y: mig_20}}")
    if plot.get("scale") not in (None, *get_args(Scale)):
        raise ValueError(f"{where}.scale: {plot['scale']!r} is none of {', '.join(get_args(Scale))}")
    name = plot.get("name", "")
    if not isinstance(name, str) or not set(name) <= set("-_.") | {c for c in name if c.isalnum()} or name[:1] == ".":
        raise ValueError(f"{where}.name: {name!r} names a file: take letters, digits, - and _")
    listed = {key: _one_or_more(plot.get(key, []), f"{where}.{key}") for key in ("by", "panels", "only")}
    by = listed["by"] if "by" in plot else None
    return Plot(plot["x"], plot["y"], by, listed["panels"], listed["only"], plot.get("scale"), name)


def _one_or_more(given: Any, where: str) -> tuple[str, ...]:
    return tuple(names([given] if isinstance(given, str) else given, where))
