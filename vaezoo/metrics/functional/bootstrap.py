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
    """Return the percentile interval of every score of a metric (Efron, 1979).

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
    tail = (1 - level) / 2
    bounds = {name: np.quantile([draw[name] for draw in draws], [tail, 1 - tail]) for name in draws[0]}
    return {name: Interval(*map(float, bound)) for name, bound in bounds.items() if not name.endswith("_seed")}
