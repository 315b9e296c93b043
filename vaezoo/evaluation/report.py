"""Evaluations as tables, CSV and JSON."""

import csv
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vaezoo import __version__
from vaezoo.metrics.catalogue import DETAIL
from vaezoo.metrics.functional import Interval
from vaezoo.metrics.scoring import LEVEL, Evaluation, Result
from vaezoo.runs.files import atomic_write
from vaezoo.text import aligned, json_text, spreadsheet_cell, tabular

MISSING = "–"
"""Cell of a score that does not fit a checkpoint."""
PACKAGES = ("torch", "lightning", "torchmetrics", "numpy", "scipy", "scikit-learn")


def versions() -> dict[str, str]:
    """Versions of everything that scores depend on."""
    return {"vaezoo": __version__, "python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def main_scores(result: Result) -> list[str]:
    """Scores of a metric for a table: its first, and those that are no detail of it."""
    first, *others = result.scores
    return [first, *(name for name in others if not DETAIL.search(name))]


def cells(evaluation: Evaluation) -> dict[str, str]:
    """Scores for a table, with intervals in brackets."""
    shown = {}
    for result in evaluation.results.values():
        for name in main_scores(result):
            shown[name] = f"{result.scores[name]:.4g}"
            if name in result.intervals:
                low, high = result.intervals[name]
                shown[name] += f" [{low:.4g}, {high:.4g}]"
    return shown


def score_table(evaluations: Mapping[str, Evaluation]) -> str:
    """Text table with one row per score and one column per checkpoint."""
    rows = aligned(score_rows(evaluations))
    return "\n".join([rows[0], "-" * max(map(len, rows)), *rows[1:]])


def tables_at(output: str | None) -> list[Path]:
    """Files that `--output` asks for: the one that its suffix names, .csv or .tex, or both where it has neither.

    Raises:
        FileExistsError: One of them is there: a comparison is never written over another.
    """
    if output is None:
        return []
    whole = Path(output).suffix in (".csv", ".tex")
    files = [Path(output)] if whole else [Path(f"{output}.csv"), Path(f"{output}.tex")]
    if there := [path for path in files if path.exists()]:
        raise FileExistsError(f"--output: {there[0]} already exists: give another name, or move it away")
    return files


def write_tables(files: Sequence[Path], evaluations: Mapping[str, Evaluation]) -> None:
    """Write one table of all evaluations, each file as its suffix says."""
    for path in files:
        if path.suffix == ".csv":
            write_csv(path, evaluations)
        else:
            with atomic_write(path) as draft:
                draft.write_text(tabular(score_rows(evaluations)))


def write_csv(path: Path, evaluations: Mapping[str, Evaluation]) -> None:
    """One line per checkpoint and score, with details."""
    with atomic_write(path) as draft, draft.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["checkpoint", "metric", "score", "value", "low", "high", "images"])
        for label, evaluation in evaluations.items():
            for metric, result in evaluation.results.items():
                for name, value in result.scores.items():
                    interval = result.intervals.get(name, ("", ""))
                    names = map(spreadsheet_cell, (label, metric, name))
                    writer.writerow([*names, value, *interval, evaluation.images])


def as_plain(evaluation: Evaluation) -> dict[str, Any]:
    """Scores with intervals and definitions as plain data."""
    metrics = {
        metric: {
            "scores": {
                name: {"value": value, **(result.intervals[name]._asdict() if name in result.intervals else {})}
                for name, value in result.scores.items()
            },
            **result.definition,
        }
        for metric, result in evaluation.results.items()
    }
    return {"images": evaluation.images, "metrics": metrics, "skipped": evaluation.skipped}


def from_plain(record: Mapping[str, Any]) -> Evaluation:
    """What `as_plain` wrote, or `write_json`.

    Raises:
        ValueError: It is no such thing.
    """
    try:
        results = {}
        for metric, entry in record["metrics"].items():
            scores = {name: float(score["value"]) for name, score in entry["scores"].items()}
            intervals = {
                name: Interval(float(score["low"]), float(score["high"]))
                for name, score in entry["scores"].items()
                if "low" in score
            }
            results[metric] = Result(scores, intervals, {key: entry[key] for key in entry if key != "scores"})
        return Evaluation(results, dict(record.get("skipped") or {}), int(record.get("images") or 0))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"these are no scores as vaezoo evaluate writes them ({error!r})") from error


def write_json(path: Path, evaluation: Evaluation, record: Mapping[str, Any]) -> None:
    """Write everything about one evaluation; NaN and infinity become strings, as JSON lacks them."""
    content = {**record, **as_plain(evaluation), "versions": versions()}
    with atomic_write(path) as draft:
        draft.write_text(json_text(content, indent=2) + "\n")


def score_rows(evaluations: Mapping[str, Evaluation]) -> list[list[str]]:
    """Cells of a table, one row a score and one column a checkpoint; the first row is its header."""
    columns = {label: cells(evaluation) for label, evaluation in evaluations.items()}
    names = dict.fromkeys(name for column in columns.values() for name in column)
    header = [f"score [{LEVEL:.0%} interval]", *columns]
    return [header, *([name, *(column.get(name, MISSING) for column in columns.values())] for name in names)]
