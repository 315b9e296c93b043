"""Confidence intervals of any score, by drawing the rows of its pool anew."""

from collections.abc import Callable
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vaezoo.metrics.functional.pool import Array, Pool, Scores
from vaezoo.metrics.functional.threads import in_threads

Method = Literal["percentile", "normal"]
Table = NDArray[Any]
Rows = NDArray[np.int64]


class Interval(NamedTuple):
    """Bounds of a confidence interval."""

    low: float
    high: float


def bootstrap(
    metric: Callable[..., Scores],
    *tables: ArrayLike,
    test: Pool | None = None,
    resamples: int = 200,
    level: float = 0.95,
    method: Method = "percentile",
    seed: int = 0,
    scores: Scores | None = None,
) -> dict[str, Interval]:
    """Return the interval of every score of a metric (Efron, 1979), laid around the score of the pool itself.

    A drawn pool repeats rows, so that scores from bins are further off on it than on the pool, and plain percentiles
    may miss the score they belong to. The interval therefore reaches as far below and above the score as the
    percentiles of the draws lie below and above their median, and always holds the score. Where a score is infinite,
    no distance says anything: percentiles stay as they are, widened to the score.

    A metric that holds rows out would find copies of its training rows among them: pass these rows as `test`, and
    either part is drawn anew from its own rows. Fixed with `functools.partial` instead, they stay as they are.

    Args:
        metric: A function of this package, say `mig`.
        *tables: What it reads, codes (N, D) and factors (N, K); their rows are drawn together.
        test: Codes and factors that the metric takes as its argument `test`.
        resamples: Number of pools drawn.
        level: Probability that the interval covers.
        method: "percentile" of the drawn scores, or "normal" from their standard deviation, for few resamples.
            Draws in which a score is not defined, as a rare factor is missing, do not count for it.
        seed: Seed of the draws.
        scores: What the metric says of the tables themselves, if that is known already.
    """
    if not 0 < level < 1 or resamples < 2:
        raise ValueError(f"level={level} must lie between 0 and 1, and resamples={resamples} be at least 2")
    arrays = [np.asarray(table) for table in tables]
    held_out = [np.asarray(table) for table in test or ()]
    rng = np.random.default_rng(seed)
    picks = [(_picked(arrays, rng), _picked(held_out, rng)) for _ in range(resamples)]

    def draw(pick: tuple[Rows, Rows]) -> Scores:
        rows, test_rows = pick
        return _scores(metric, [table[rows] for table in arrays], [table[test_rows] for table in held_out])

    draws = in_threads(draw, picks)
    intervals = {}
    for name, score in (scores or _scores(metric, arrays, held_out)).items():
        values = np.array([draw[name] for draw in draws if not np.isnan(draw.get(name, np.nan))])
        if len(values) > 1 and not np.isnan(score) and not name.endswith("_seed"):
            intervals[name] = _interval(score, values, level, method)
    return intervals


def _picked(tables: list[Table], rng: np.random.Generator) -> Rows:
    rows = len(tables[0]) if tables else 0
    return rng.integers(rows, size=rows) if rows else np.empty(0, dtype=np.int64)


def _scores(metric: Callable[..., Scores], tables: list[Table], held_out: list[Table]) -> Scores:
    return metric(*tables, test=tuple(held_out)) if held_out else metric(*tables)


def _interval(score: float, values: Array, level: float, method: Method) -> Interval:
    finite = np.isfinite([score, *values]).all()
    if method == "normal" and finite:
        reach = NormalDist().inv_cdf((1 + level) / 2) * values.std(ddof=1)
        return Interval(float(score - reach), float(score + reach))
    low, middle, high = np.quantile(values, [(1 - level) / 2, 0.5, (1 + level) / 2], method="nearest")
    if finite:  # distances first: a difference of equal numbers is 0, and the score stays inside to the last bit
        return Interval(float(score - (middle - low)), float(score + (high - middle)))
    return Interval(float(min(low, score)), float(max(high, score)))
