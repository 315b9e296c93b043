"""One score of one pool, with its interval and its definition."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from lightning.pytorch.utilities import rank_zero_warn
from numpy.typing import ArrayLike

from vaezoo.metrics.arguments import Chosen
from vaezoo.metrics.base import ScoreMetric
from vaezoo.metrics.catalogue import METRICS
from vaezoo.metrics.functional import Interval, Scores, bootstrap
from vaezoo.metrics.functional.bootstrap import Method
from vaezoo.metrics.functional.pool import hold_out

LEVEL = 0.95
FEW = 50  # resamples: with fewer, the tails of the percentiles would be single draws


class Result(NamedTuple):
    """What one metric says.

    Attributes:
        scores: Its scores by name, seeds included.
        intervals: 95 % intervals of them; none where none was asked for.
        definition: What was computed and how, as plain data.
    """

    scores: Scores
    intervals: dict[str, Interval]
    definition: dict[str, Any]


class Evaluation(NamedTuple):
    """Scores of one model.

    Attributes:
        results: By metric.
        skipped: Why a metric does not fit the model or the data.
        images: Size of the pool.
    """

    results: dict[str, Result]
    skipped: dict[str, str]
    images: int


@contextmanager
def fitting(name: str, skipped: dict[str, str] | None) -> Iterator[None]:
    """Name the metric in its errors, or write the error down and go on where there is a place for it."""
    try:
        yield
    except ValueError as error:
        if skipped is None:
            raise ValueError(f"{name} does not fit: {error}") from error
        skipped[name] = str(error)


def warn_of_few(counts: Mapping[str, tuple[int, int]]) -> None:
    """Warn of scores from fewer images than they want, in one line for all that want the same.

    Args:
        counts: Images that were scored, and images wanted (`ScoreMetric.wants`), by the score's name.
    """
    few: dict[tuple[int, int], list[str]] = {}
    for name, (images, wanted) in counts.items():
        if images < wanted:
            few.setdefault((images, wanted), []).append(name)
    for (images, wanted), names in few.items():
        rank_zero_warn(
            f"{', '.join(names)}: {images:,} images are too few to rely on; give {wanted:,} or more", stacklevel=4
        )


def warned_of_few(evaluation: Evaluation) -> Evaluation:
    """The evaluation itself, once its scores from too few images are warned of."""
    counts = {}
    for label, result in evaluation.results.items():
        fitted_on = result.definition.get("fitted_on", {}).get("images", evaluation.images)
        images = min(result.definition.get("images", evaluation.images), fitted_on)
        counts[label] = images, METRICS[label.partition("[")[0]].shell.wants
    warn_of_few(counts)
    return evaluation


def labelled(result: Result, chosen: Chosen) -> Result:
    """Name scores of some latent groups so that those of others may stand beside them."""
    if chosen.latents is None:
        return result

    def label(name: str) -> str:
        return chosen.label + name.removeprefix(chosen.name)

    scores = {label(name): value for name, value in result.scores.items()}
    intervals = {label(name): interval for name, interval in result.intervals.items()}
    return Result(scores, intervals, {**result.definition, "latents": list(chosen.latents)})


def score(shell: ScoreMetric, resamples: int, seed: int) -> Result:
    """Compute what a shell has gathered, with intervals.

    A score that holds images out is drawn anew from either part among itself: a copy of a training image must not
    come up in the test.
    """
    arguments = inspect.signature(shell.score).parameters
    scores = shell.scores()
    if not resamples:
        return Result(scores, {}, {**definition(shell.score), "interval": None})
    method: Method = "percentile" if resamples >= FEW else "normal"
    draw = partial(bootstrap, shell.score, resamples=resamples, level=LEVEL, method=method, seed=seed, scores=scores)
    tables: Sequence[ArrayLike] = shell.tables()
    test = shell.test_pool()
    if "test_fraction" in arguments:
        codes, factors = tables
        part = hold_out(codes, factors, None, arguments["test_fraction"].default, arguments["seed"].default)
        tables, test = (part.codes, part.labels), (part.test_codes, part.test_labels)
    intervals = draw(*tables, test=test)
    drawn = "images" if test is None else "training and held-out images, each among themselves"
    interval = {"level": LEVEL, "resamples": resamples, "method": method, "drawn": drawn}
    return Result(scores, intervals, {**definition(shell.score), "interval": interval})


def definition(function: Callable[..., Scores]) -> dict[str, Any]:
    """Name a function of `vaezoo.metrics.functional`, what it computes, and all its arguments."""
    inner = function.func if isinstance(function, partial) else function
    defaults = {name: argument.default for name, argument in inspect.signature(function).parameters.items()}
    return {
        "definition": (inspect.getdoc(inner) or "").partition("\n")[0],
        "function": f"vaezoo.metrics.functional.{inner.__name__}",
        "arguments": {k: v for k, v in defaults.items() if k != "test" and v is not inspect.Parameter.empty},
    }
