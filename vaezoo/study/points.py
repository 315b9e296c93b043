"""The numbers behind a study's plots: means and standard deviations over seeds, from results.csv."""

import csv
import math
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from vaezoo.runs.labels import settings_label
from vaezoo.study.plot_section import Plot

Record = dict[str, str]


class Point(NamedTuple):
    """All seeds of one place in the grid.

    Attributes:
        x: Value of the axis, or mean of the score.
        y: Mean of the score.
        x_std: Standard deviation of the score on x; None for an axis, or for a single seed.
        y_std: Standard deviation; None for a single seed.
        seeds: Number of seeds.
        label: Place in the grid, where x is a score.
    """

    x: float | str
    y: float
    x_std: float | None
    y_std: float | None
    seeds: int
    label: str = ""


Lines = dict[str, list[Point]]


def read_results(file: Path) -> list[Record]:
    """Finished runs of a results.csv, as text by column.

    Raises:
        FileNotFoundError: It is not there.
        ValueError: It is no results.csv.
    """
    if not file.is_file():
        raise FileNotFoundError(f"no {file}: run the study first, or name its folder with --output")
    with file.open(newline="", encoding="utf-8") as lines:
        reader = csv.DictReader(lines)
        if not {"run", "config", "finished"} <= set(reader.fieldnames or ()):
            raise ValueError(f"{file} is no results.csv of a study: it lacks the columns run, config and finished")
        return [record for record in reader if record["finished"] == "True"]


def varying(records: Sequence[Record], axes: Iterable[str]) -> list[str]:
    """Axes with two values or more among runs."""
    return [axis for axis in axes if len({record.get(axis) for record in records} - {"", None}) > 1]


def plot_points(plot: Plot, records: Sequence[Record], axes: Sequence[str]) -> dict[str, Lines]:
    """Points by panel and line, all in the order of the runs; lines over an axis of numbers go up with it.

    Args:
        plot: What is drawn.
        records: Finished runs.
        axes: Axes of the study by short name, `config` among them.

    Raises:
        ValueError: Runs of several places in the grid would share one point.
    """
    chosen = [record for record in records if _chosen(record["run"], plot.only)]
    over_axis = plot.x in axes
    rest = [axis for axis in varying(chosen, axes) if axis != plot.x and axis not in plot.panels]
    # Over a score, each line runs through the places of one configuration.
    by = plot.by if plot.by is not None else tuple(rest if over_axis else [axis for axis in rest if axis == "config"])
    places: dict[tuple[str, ...], list[Record]] = {}
    for record in chosen:
        there = bool(record.get(plot.x)) if over_axis else _number(record.get(plot.x)) is not None
        if there and _number(record.get(plot.y)) is not None:
            places.setdefault(tuple(record.get(axis, "") for axis in axes), []).append(record)
    panels: dict[str, Lines] = {}
    for seeds in places.values():
        first = seeds[0]
        others = [axis for axis in rest if axis not in by and first.get(axis)]
        point = _point(plot, seeds, over_axis, "" if over_axis else ", ".join(_short(first[axis]) for axis in others))
        line = panels.setdefault(_title(first, plot.panels), {}).setdefault(_title(first, by), [])
        if over_axis and any(other.x == point.x for other in line):
            raise ValueError(
                f"{plot.stem}: runs that differ in {', '.join(others)} share a point: add it to by or panels, or "
                "choose among them with only"
            )
        line.append(point)
    for line in [line for lines in panels.values() for line in lines.values()]:
        if over_axis and all(isinstance(point.x, float) for point in line):
            line.sort(key=lambda point: point.x)
    return panels


def _point(plot: Plot, seeds: Sequence[Record], over_axis: bool, label: str) -> Point:
    y = [float(record[plot.y]) for record in seeds]
    y_std = stdev(y) if len(y) > 1 else None
    if over_axis:
        value = seeds[0][plot.x]
        number = _number(value)
        return Point(value if number is None else number, fmean(y), None, y_std, len(seeds))
    x = [float(record[plot.x]) for record in seeds]
    return Point(fmean(x), fmean(y), stdev(x) if len(x) > 1 else None, y_std, len(seeds), label)


def _chosen(run: str, only: Sequence[str]) -> bool:
    place = run.rpartition("-s")[0]
    return not only or any(fnmatchcase(place, pattern) for pattern in only)


def _number(text: str | None) -> float | None:
    """A finite number, or None."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _short(value: str) -> str:
    number = _number(value)
    return value if number is None else f"{number:g}"


def _title(record: Record, axes: Sequence[str]) -> str:
    return settings_label({axis: record.get(axis, "") for axis in axes})
