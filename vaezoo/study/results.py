"""Scores of a study's runs as files of results and tables of statistics."""

import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from vaezoo.metrics.catalogue import DETAIL, higher_is_better
from vaezoo.runs.files import atomic_write
from vaezoo.study.columns import FACTS
from vaezoo.study.file import STATISTICS
from vaezoo.study.grid import Run
from vaezoo.text import markdown_row, tabular

BEST = 0.1  # share of the runs of a row whose mean is shown, as Margonis et al. (2020), Table 1
HEADERS = {"n": "n", "mean": "mean ± std", "lowest": "lowest", "highest": "highest", "best": "mean of the best 10 %"}


class Table(NamedTuple):
    """Statistics of one score.

    Attributes:
        score: Its name.
        direction: Whether more is better; None where neither is.
        header: Names of the columns.
        rows: Their texts.
    """

    score: str
    direction: bool | None
    header: list[str]
    rows: list[list[str]]

    @property
    def title(self) -> str:
        """Name and direction."""
        return f"{self.score}{ {True: ' (higher is better)', False: ' (lower is better)', None: ''}[self.direction] }"


def records(runs: Sequence[Run], results: Mapping[str, dict[str, Any]], budget: str) -> list[dict[str, Any]]:
    """One record a run: what it is, what it took, and its scores.

    Args:
        runs: All runs of the study.
        results: Results of the finished ones, by name.
        budget: The study's budget.
    """
    found = []
    for run in runs:
        result = results.get(run.name, {})
        record = {"run": run.name, "config": run.part, "file": str(run.config), **run.place, "seed": run.seed}
        record |= {"budget": budget, "overrides": json.dumps(run.overrides), "finished": bool(result)}
        record |= {key: result.get(key) for key in FACTS}
        scores = {name: float(value) for part in result.get("scores", {}).values() for name, value in part.items()}
        found.append(record | scores)
    return found


def statistics(values: Sequence[float], direction: bool | None) -> dict[str, str]:
    """Statistics of one score over seeds, as text; infinite scores count as they are.

    Args:
        values: At least one.
        direction: Whether more is better.
    """
    spread = ""
    if len(values) > 1 and all(map(math.isfinite, values)):
        deviation = stdev(values)
        spread = f" ± {deviation:.2g}" if deviation < 99 else f" ± {deviation:.0f}"  # no exponents
    best = sorted(values, reverse=bool(direction))[: max(1, int(BEST * len(values)))]
    return {
        "n": str(len(values)),
        "mean": f"{fmean(values):.4g}{spread}",
        "lowest": f"{min(values):.4g}",
        "highest": f"{max(values):.4g}",
        "best": "" if direction is None else f"{fmean(best):.4g}",
    }


def tables(
    found: Sequence[dict[str, Any]],
    runs: Sequence[Run],
    results: Mapping[str, dict[str, Any]],
    summary: Mapping[str, Any],
) -> list[Table]:
    """One table a score, with a row for all seeds of one place in the grid."""
    places = list(dict.fromkeys(["config", *(axis for run in runs for axis in run.place)]))
    keys: list[str] = summary.get("rows") or places
    shown: Sequence[str] = summary.get("statistics") or STATISTICS
    made = []
    for score, direction in _scores(results.values(), summary.get("scores")).items():
        values: dict[tuple[str, ...], list[float]] = {}
        for record in found:
            if record.get(score) is not None and not math.isnan(record[score]):
                values.setdefault(tuple(_text(record.get(key)) for key in keys), []).append(record[score])
        rows = [[*row, *(statistics(scores, direction)[name] for name in shown)] for row, scores in values.items()]
        made.append(Table(score, direction, [*keys, *(HEADERS[name] for name in shown)], rows))
    return made


def markdown(title: str, made: Sequence[Table]) -> str:
    """Tables for reading."""
    lines = [f"# {title}", ""]
    for table in made:
        lines += [f"## {table.title}", "", markdown_row(table.header), markdown_row(["---"] * len(table.header))]
        lines += [*(markdown_row(row) for row in table.rows), ""]
    return "\n".join(lines)


def latex(made: Sequence[Table]) -> str:
    """The same as LaTeX tabulars."""
    return "\n".join(f"% {table.title}\n{tabular([table.header, *table.rows])}" for table in made)


def write_all(
    output: Path,
    title: str,
    runs: Sequence[Run],
    results: Mapping[str, dict[str, Any]],
    budget: str,
    summary: Mapping[str, Any],
) -> list[Path]:
    """Write results.csv, results.parquet, summary.md and summary.tex; where they are."""
    import pandas as pd

    found = records(runs, results, budget)
    frame = pd.DataFrame(found)
    for column in frame.columns:  # Parquet has one type a column
        if frame[column].map(type).nunique() > 1 and any(isinstance(value, (str, list)) for value in frame[column]):
            frame[column] = frame[column].map(_text)
    packed = io.BytesIO()
    frame.to_parquet(packed, index=False)
    made = tables(found, runs, results, summary)
    files: dict[str, str | bytes] = {
        "results.csv": frame.to_csv(index=False),
        "results.parquet": packed.getvalue(),
        "summary.md": markdown(title, made),
        "summary.tex": latex(made),
    }
    for name, content in files.items():
        with atomic_write(output / name) as draft:
            draft.write_bytes(content.encode() if isinstance(content, str) else content)
    return [output / name for name in files]


def _scores(results: Iterable[dict[str, Any]], chosen: Sequence[str] | None) -> dict[str, bool | None]:
    """Scores for tables with their directions: those that are named, or all that are no detail."""
    metrics = {name: metric for result in results for metric, scores in result["scores"].items() for name in scores}
    firsts = {next(iter(scores)) for result in results for scores in result["scores"].values() if scores}
    names = chosen or [name for name in metrics if name in firsts or not DETAIL.search(name)]
    return {name: higher_is_better(metrics[name]) for name in names if name in metrics}


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
