"""Compute a score with its interval and its definition."""

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
    """Result of one metric.

    Attributes:
        scores: Its scores by name, seeds included.
        intervals: 95 % confidence intervals; empty if not requested.
        definition: How it was computed, as plain data.
    """

    scores: Scores
    intervals: dict[str, Interval]
    definition: dict[str, Any]


class Evaluation(NamedTuple):
    """Scores of one model.

    Attributes:
        results: By metric.
        skipped: Reason for each metric that does not apply.
        images: Number of images scored.
    """

    results: dict[str, Result]
    skipped: dict[str, str]
    images: int


@contextmanager
def fitting(name: str, skipped: dict[str, str] | None) -> Iterator[None]:
    """Prefix errors with the metric's name, or record them and continue."""
    try:
        yield
    except ValueError as error:
        if skipped is None:
            raise ValueError(f"{name} does not fit: {error}") from error
        skipped[name] = str(error)


def warn_of_few(counts: Mapping[str, tuple[int, int]]) -> None:
    """Warn of scores from too few images, one line per required number.

    Args:
        counts: Images scored and images required (`ScoreMetric.wants`), by score name.
    """
    few: dict[tuple[int, int], list[str]] = {}
    for name, (images, wanted) in counts.items():
        if images < wanted:
            few.setdefault((images, wanted), []).append(name)
    for (images, wanted), names in few.items():
        rank_zero_warn(
            f"{', '.join(names)}: {images:,} images are too few for a reliable score; use {wanted:,} or more",
            stacklevel=4,
        )


def warned_of_few(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation after warning of scores from too few images."""
    counts = {}
    for label, result in evaluation.results.items():
        fitted_on = result.definition.get("fitted_on", {}).get("images", evaluation.images)
        images = min(result.definition.get("images", evaluation.images), fitted_on)
        counts[label] = images, METRICS[label.partition("[")[0]].shell.wants
    warn_of_few(counts)
    return evaluation


def labelled(result: Result, chosen: Chosen) -> Result:
    """Add latent groups to score names, to tell them from scores of other groups."""
    if chosen.latents is None:
        return result

    def label(name: str) -> str:
        return chosen.label + name.removeprefix(chosen.name)

    scores = {label(name): value for name, value in result.scores.items()}
    intervals = {label(name): interval for name, interval in result.intervals.items()}
    return Result(scores, intervals, {**result.definition, "latents": list(chosen.latents)})


def score(shell: ScoreMetric, resamples: int, seed: int) -> Result:
    """Compute a metric with intervals.

    Training and test rows are resampled separately: a copy of a training image must not appear in the test set.
    """
    arguments = inspect.signature(shell.score).parameters
    scores = shell.scores()
    if not (resamples and shell.bootstrapped):
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
    """Describe a score: its function in `vaezoo.metrics.functional`, what it computes, and all arguments."""
    inner = function.func if isinstance(function, partial) else function
    defaults = {name: argument.default for name, argument in inspect.signature(function).parameters.items()}
    return {
        "definition": (inspect.getdoc(inner) or "").partition("\n")[0],
        "function": f"vaezoo.metrics.functional.{inner.__name__}",
        "arguments": {k: v for k, v in defaults.items() if k != "test" and v is not inspect.Parameter.empty},
    }
