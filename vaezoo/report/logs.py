"""The curves in a run's metrics.csv."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_STEPS = 2**52  # the page counts in doubles, which lose whole numbers beyond
NOT_TERMS = ("step", "epoch")


@dataclass
class Curve:
    """One logged value over steps.

    Attributes:
        x: Steps.
        y: Values; None where one was not finite.
        last: The last logged value.
    """

    x: list[int]
    y: list[float | None]
    last: float


def read_curves(files: Sequence[Path], points: int) -> dict[str, Curve]:
    """All logged values by name.

    Args:
        files: CSV files with a column "step", of a run and of those that it continues, the first one first. What a
            later one logs takes the place of what the one before had logged beyond its checkpoint.
        points: Most points of a curve; of more, neighbours are averaged.
    """
    logged: dict[str, list[tuple[int, float]]] = {}
    for file in files:
        for name, values in _read(file).items():
            before = [pair for pair in logged.get(name, ()) if pair[0] < values[0][0]]
            logged[name] = before + values
    return {name: thin(values, points) for name, values in sorted(logged.items())}


def _read(file: Path) -> dict[str, list[tuple[int, float]]]:
    logged: dict[str, list[tuple[int, float]]] = {}
    with file.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            step = _number(row.get("step"))
            if step is None or not abs(step) < MOST_STEPS:
                continue  # a line that was cut off, or damaged
            for name, text in row.items():
                value = _number(text)
                if name and name not in NOT_TERMS and value is not None:
                    logged.setdefault(name, []).append((int(step), value))
    return logged


def thin(values: list[tuple[int, float]], points: int) -> Curve:
    """Average neighbours so that at most `points` are left; a mean of anything not finite is None."""
    values = sorted(values, key=lambda pair: pair[0])
    each = math.ceil(len(values) / points)
    x: list[int] = []
    y: list[float | None] = []
    for start in range(0, len(values), each):
        part = values[start : start + each]
        mean = sum(value for _, value in part) / len(part)
        x.append(part[-1][0])
        y.append(float(f"{mean:.5g}") if math.isfinite(mean) else None)
    return Curve(x, y, values[-1][1])


def _number(text: object) -> float | None:
    try:
        return float(text) if isinstance(text, str) else None
    except ValueError:
        return None
