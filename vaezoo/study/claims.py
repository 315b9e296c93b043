"""How sure a paper's ordering of two rows is, over the seeds that ran."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from vaezoo.metrics.catalogue import higher_is_better
from vaezoo.study.expected import Row, metric_of
from vaezoo.text import markdown_row

HEADER = ("claim", "score", "better by", "standard errors", "p")


def claims_table(rows: Sequence[Row], runs: Sequence[Mapping[str, Any]]) -> str:
    """The orderings that a paper claims, each with Welch's one-sided test over seeds, as Markdown.

    "standard errors" is the difference of the two means in units of its standard error, Welch's t. A claim needs two
    seeds on both sides; without one the text is empty.

    Args:
        rows: Rows of the study; `Row.better` has the claims.
        runs: Records of its finished runs.
    """
    lines = [line for row in rows for line in _tested(row, {row.label: row for row in rows}, runs)]
    if not lines:
        return ""
    return "\n".join(markdown_row(line) for line in (list(HEADER), ["---"] * len(HEADER), *lines))


def _tested(row: Row, rows: Mapping[str, Row], runs: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    from scipy import stats  # slow to import, and only a finished study needs it

    metrics = metric_of(runs)
    for other, scores in row.better.items():
        for score in scores:
            ours, theirs = row.values(runs, score), rows[other].values(runs, score)
            if min(len(ours), len(theirs)) < 2:
                continue
            sign = 1 if higher_is_better(metrics[score]) else -1
            test = stats.ttest_ind(
                [sign * value for value in ours],
                [sign * value for value in theirs],
                equal_var=False,
                alternative="greater",
            )
            gain = sign * (fmean(ours) - fmean(theirs))
            yield [f"{row.label} > {other}", score, f"{gain:.3g}", f"{test.statistic:.1f}", f"{test.pvalue:.2g}"]
