"""Bootstrap confidence intervals of any score."""

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
    """Bootstrap interval of every score of a metric (Efron, 1979), centred on the score of the full pool.

    A resample repeats rows, which biases scores that use bins, so plain percentiles may miss the score. The interval
    therefore extends below and above the score as far as the percentiles lie below and above the median of the
    resamples, and always contains the score. If a score is infinite, the plain percentiles are used, widened to the
    score.

    Pass the test rows of a metric with a held-out set as `test`, so that both sets are resampled separately. Otherwise
    copies of training rows would end up in the test set. Test rows fixed by `functools.partial` are not resampled.

    Args:
        metric: A function of this package, e.g. `mig`.
        *tables: Its inputs, codes (N, D) and factors (N, K); rows are resampled jointly.
        test: Codes and factors for the metric's argument `test`.
        resamples: Number of bootstrap resamples.
        level: Coverage of the interval.
        method: "percentile" of the resampled scores, or "normal" from their standard deviation, for few resamples.
            Resamples with an undefined score, e.g. because a rare factor is missing, are ignored.
        seed: Seed of the resamples.
        scores: Scores of the full tables, if already computed.
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
