"""Confidence intervals of any score, by drawing the rows of its pool anew."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vaezoo.metrics.functional.pool import Scores, as_codes


class Interval(NamedTuple):
    """Bounds of a confidence interval."""

    low: float
    high: float


def bootstrap(
    metric: Callable[..., Scores],
    *tables: ArrayLike,
    resamples: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Interval]:
    """Return the percentile interval of every score of a metric (Efron, 1979), moved to the score of the pool itself.

    Moved, because a drawn pool repeats rows: scores from bins are further off on it than on the pool, and near a
    perfect score the interval would miss the score it belongs to.

    A metric that holds rows out would find copies of its training rows among them: fix its `test` pool with
    `functools.partial`, and only the training rows are drawn anew.

    Args:
        metric: A function of this package, say `mig` or `partial(dci, test=(codes, factors))`.
        *tables: What it reads, codes (N, D) and factors (N, K); their rows are drawn together.
        resamples: Number of pools drawn.
        level: Probability that the interval covers.
        seed: Seed of the draws.
    """
    if not 0 < level < 1 or resamples < 2:
        raise ValueError(f"level={level} must lie between 0 and 1, and resamples={resamples} be at least 2")
    arrays = [np.asarray(table) for table in tables]
    rows = len(as_codes(arrays[0]))
    rng = np.random.default_rng(seed)
    draws = [metric(*(table[pick] for table in arrays)) for pick in rng.integers(rows, size=(resamples, rows))]
    tails = [(1 - level) / 2, (1 + level) / 2]
    intervals = {}
    for name, score in metric(*arrays).items():
        values = np.array([draw[name] for draw in draws])
        shift = score - values.mean() if np.isfinite([score, *values]).all() else 0.0
        low, high = np.quantile(values, tails, method="nearest") + shift  # which leaves infinity be
        intervals[name] = Interval(float(low), float(high))
    return {name: interval for name, interval in intervals.items() if not name.endswith("_seed")}
