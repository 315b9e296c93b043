"""What studies are expected to give, what they gave, and what the papers print."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from vaezoo.metrics.catalogue import higher_is_better
from vaezoo.study.results import statistics
from vaezoo.text import markdown_row


@dataclass(frozen=True)
class Row:
    """One row of a paper's table.

    Attributes:
        label: What it is.
        config: Name of the configuration in the study.
        place: Its place in the grid; axes that are not named may be anywhere.
        paper: What the paper prints, by score.
        budgets: Mean over seeds and its tolerance by score, for each budget.
        better: The paper's claims: scores in which this row is better than another, by that row's label.
    """

    label: str
    config: str
    place: dict[str, Any] = field(default_factory=dict)
    paper: dict[str, str] = field(default_factory=dict)
    budgets: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    better: dict[str, list[str]] = field(default_factory=dict)

    def values(self, runs: Sequence[Mapping[str, Any]], score: str) -> list[float]:
        """A score of the runs that belong to this row."""
        return [value for run in self.runs(runs) if (value := flat(run).get(score)) is not None]

    def runs(self, runs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The runs that belong to this row."""
        return [run for run in runs if run["config"] == self.config and self.place.items() <= run["place"].items()]


def read_expected(path: Path) -> dict[str, list[Row]]:
    """Rows by study.

    Raises:
        ValueError: Something in the file is wrong; the message says where.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no {path}: restore it")
    try:
        return {study: _rows(rows) for study, rows in json.loads(path.read_text("utf-8")).items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({type(error).__name__}: {error}): restore it") from error


def compare(rows: Sequence[Row], runs: Sequence[Mapping[str, Any]], budget: str) -> tuple[list[str], list[str]]:
    """Means over seeds against what is expected of them.

    Args:
        rows: What is expected of the study.
        runs: Records of its finished runs.
        budget: The budget that they ran with.

    Returns:
        A line for each comparison, and the lines of those that failed.
    """
    said, off = [], []
    for row in rows:
        for score, (expected, tolerance) in row.budgets.get(budget, {}).items():
            values = row.values(runs, score)
            found = f"{fmean(values):.4g}" if values else "no run"
            line = f"{row.label}: {score} {found}, expected {expected:g} ± {tolerance:g}"
            said.append(line)
            if not values or not abs(fmean(values) - expected) <= tolerance:
                off.append(line)
    return said, off


def comparison_table(rows: Sequence[Row], runs: Sequence[Mapping[str, Any]]) -> str:
    """What was measured beside what the papers print, as Markdown: one line a row that has runs.

    A score is its mean over seeds; its best value is there as well where there are several seeds.

    Args:
        rows: Rows of the study.
        runs: Records of its finished runs.
    """
    metrics = metric_of(runs)
    shown = list(dict.fromkeys(score for row in rows for score in (*row.paper, *_expected_scores(row))))
    shown = [score for score in shown if score in metrics]
    printed = {score for row in rows for score in row.paper}
    several = any(len(row.runs(runs)) > 1 for row in rows)
    header = ["", "seeds"]
    for score in shown:
        header += [score, *(["best"] if several else []), *(["paper"] if score in printed else [])]
    lines = [[*header, "steps", "minutes a run", "data"]]
    for row in rows:
        if own := row.runs(runs):
            cells = [row.label, str(len(own))]
            for score in shown:
                direction = higher_is_better(metrics[score])
                of = statistics(row.values(runs, score), direction) if row.values(runs, score) else {}
                cells += [of.get("mean", ""), *([of.get("highest" if direction else "lowest", "")] if several else [])]
                cells += [row.paper.get(score, "")] if score in printed else []
            minutes = [run["seconds"] / 60 for run in own]
            steps = _span([run["steps"] for run in own])
            lines.append([*cells, steps, _span(minutes, int(max(minutes) < 10)), _sources(own)])
    return "\n".join(markdown_row(line) for line in (lines[0], ["---"] * len(lines[0]), *lines[1:]))


def metric_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The metric that each score of the runs is of."""
    return {score: metric for run in runs for metric, scores in run["scores"].items() for score in scores}


def flat(run: Mapping[str, Any]) -> dict[str, float]:
    """Scores of a run by name; what is not finite stays so, and is never as expected."""
    return {name: float(value) for part in run["scores"].values() for name, value in part.items()}


def _expected_scores(row: Row) -> list[str]:
    return [score for scores in row.budgets.values() for score in scores]


def _span(values: Sequence[float], decimals: int = 0) -> str:
    low, high = (f"{pick(values):,.{decimals}f}" for pick in (min, max))
    return low if low == high else f"{low} to {high}"


def _sources(runs: Sequence[Mapping[str, Any]]) -> str:
    """Whether the images came from files or were drawn."""
    return ", ".join(sorted({{"render": "drawn", "file": "files"}[run["images"]["source"]] for run in runs}))


def _rows(given: Sequence[dict[str, Any]]) -> list[Row]:
    rows = [_row(row) for row in given]
    labels = {row.label for row in rows}
    for row in rows:
        if unknown := set(row.better) - labels:
            raise ValueError(f"{row.label!r} is to be better than {min(unknown)!r}, which is no row")
    return rows


def _row(given: dict[str, Any]) -> Row:
    budgets = {
        budget: {score: (float(value), float(tolerance)) for score, (value, tolerance) in scores.items()}
        for budget, scores in given.get("budgets", {}).items()
    }
    row = Row(**{**given, "budgets": budgets})
    if not all(tolerance > 0 for scores in budgets.values() for _, tolerance in scores.values()):
        raise ValueError(f"{row.label!r} has a tolerance that is not above 0")
    return row
