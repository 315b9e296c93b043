"""Columns of results.csv: axes of the grid, facts and scores never share a name."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from vaezoo.metrics.catalogue import METRICS

FACTS = ("steps", "seconds", "attempts", "stopped", "folder", "checkpoint")
"""What a result says of its run; scores follow."""
TAKEN = {"run", "config", "file", "seed", "budget", "overrides", "finished", *FACTS}


def short_name(axis: str, points: Any) -> str:
    """The last word of an option; points by name are called as their axis is."""
    return axis if isinstance(points, dict) else axis.rpartition(".")[2]


def axis_columns(axes: Mapping[str, Any]) -> dict[str, str]:
    """Column of each axis of a configuration: its short name, or the whole option where that name is taken.

    Args:
        axes: Points by axis, as in a study's grid.

    Raises:
        ValueError: An axis of points by name has a name that is taken.
    """
    count = Counter(short_name(axis, points) for axis, points in axes.items())
    columns = {}
    for axis, points in axes.items():
        name = short_name(axis, points)
        taken = name in TAKEN or any(f"{name}_".startswith(f"{metric}_") for metric in METRICS)
        if taken and isinstance(points, dict):
            raise ValueError(f"grid.{axis}: results have a column {axis!r} already: give the axis another name")
        columns[axis] = axis if taken or (count[name] > 1 and not isinstance(points, dict)) else name
    return columns
