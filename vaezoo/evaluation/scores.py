"""Scores of one model on one pool of images, with intervals."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from numpy.typing import ArrayLike
from tqdm import tqdm

from vaezoo.evaluation.arguments import read_scores
from vaezoo.evaluation.catalogue import METRICS, build
from vaezoo.metrics.base import FittedMetric, ScoreMetric
from vaezoo.metrics.encoded import Encoded, bind_known, code_columns, known_facts
from vaezoo.metrics.functional import Interval, Scores, bootstrap
from vaezoo.metrics.functional.bootstrap import Method
from vaezoo.metrics.functional.pool import hold_out
from vaezoo.metrics.protocols import EvaluationData, Split
from vaezoo.models.base import VAE

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


def evaluate(
    model: VAE,
    data: EvaluationData,
    metrics: Sequence[str] | None = None,
    images: int = 10_000,
    split: Split = "test",
    seed: int = 0,
    resamples: int | None = None,
    latents: Sequence[str] | None = None,
) -> Evaluation:
    """Encode one pool of images and score it.

    Args:
        model: A model, in evaluation; its device is used.
        data: Where the images come from, set up.
        metrics: Names of the catalogue, with arguments as in `read_scores`; defaults to those of its defaults that
            fit the model and the data.
        images: Most images of the pool.
        split: Part of the data that they come from.
        seed: Seed of the pool, of the scores and of the intervals.
        resamples: Pools drawn for each interval, 0 for none; the catalogue's numbers where None.
        latents: Latent groups whose codes are read; all where None.

    Raises:
        ValueError: A metric that was named is unknown, or does not fit the model or the data.
    """
    chosen = read_scores(metrics or [name for name, entry in METRICS.items() if entry.default])
    code_columns(model, latents)  # an unknown latent is no matter of single metrics
    shells = {name: build(name, seed, **arguments) for name, arguments in chosen.items()}
    results: dict[str, Result] = {}
    skipped: dict[str, str] = {}
    fitting = partial(_fitting, skipped=None if metrics else skipped)
    for name, shell in shells.items():
        bind_known(shell, **known_facts(model, data, latents))
        with fitting(name):
            _check_held_out(shell, split)

    def encode(part: Split, names: Iterable[str], training: bool = False) -> int:
        count = 0
        batches = data.evaluation_batches(images, part, seed, model.device)
        for batch, factors in tqdm(batches, "encoding", unit="batch", leave=False, disable=None):
            encoded = Encoded(model, batch, factors, data, latents)
            count += len(factors)
            for name in [name for name in names if name not in skipped]:
                with fitting(name):
                    encoded.update(shells[name], training)
        return count

    with torch.no_grad():
        count = encode(split, shells)
        fitted = [name for name, shell in shells.items() if isinstance(shell, FittedMetric) and name not in skipped]
        training = encode("train", fitted, training=True) if fitted else 0
    for name in tqdm([name for name in shells if name not in skipped], "scores", leave=False, disable=None):
        with fitting(name):
            results[name] = score(shells[name], METRICS[name].resamples if resamples is None else resamples, seed)
            if name in fitted:
                results[name].definition["fitted_on"] = {"split": "train", "images": training}
            elif (known := len(shells[name].tables()[0])) < count:
                results[name].definition["images"] = known  # the others lack a factor or a label
    return Evaluation(results, skipped, count)


def _check_held_out(shell: ScoreMetric, split: Split) -> None:
    if isinstance(shell, FittedMetric) and split in ("train", "all"):
        raise ValueError(f"it is fitted on training images, which split {split!r} holds: score test or val images")


@contextmanager
def _fitting(name: str, skipped: dict[str, str] | None) -> Iterator[None]:
    """Name the metric in its errors, or write the error down and go on where there is a place for it."""
    try:
        yield
    except ValueError as error:
        if skipped is None:
            raise ValueError(f"{name} does not fit: {error}") from error
        skipped[name] = str(error)


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
    draw = partial(bootstrap, shell.score, resamples=resamples, level=LEVEL, method=method, seed=seed)
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
