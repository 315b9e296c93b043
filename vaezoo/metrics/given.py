"""Score codes from any program, without a model."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from vaezoo.metrics.arguments import read_scores
from vaezoo.metrics.base import FittedMetric
from vaezoo.metrics.catalogue import METRICS, build
from vaezoo.metrics.functional.places import BINS, factor_places
from vaezoo.metrics.functional.pool import as_codes
from vaezoo.metrics.reading import Reading, bind_known, categorical
from vaezoo.metrics.scoring import Evaluation, Result, fitting, labelled, score, warned_of_few


class Factors(NamedTuple):
    """Factors of given codes.

    Attributes:
        places: Values numbered by `factor_places`; -1 if unobserved, (N, K).
        factor_names: Their names.
        factor_kinds: "categorical" or "ordered" each.
    """

    places: Tensor
    factor_names: tuple[str, ...]
    factor_kinds: tuple[str, ...]


class Given(Reading):
    """Codes and factors for scores. Raises for scores that need a model.

    Args:
        codes: Codes (N, D), probabilities of discrete latents last.
        factors: Their factors.
        discrete: Class counts of the discrete latents.
    """

    def __init__(self, codes: Tensor, factors: Factors, discrete: tuple[int, ...]) -> None:
        super().__init__(factors.places, factors)
        self.codes, self._discrete = codes, discrete

    @property
    def class_probabilities(self) -> Tensor:
        """Probabilities of the first discrete latent, (N, classes)."""
        if not self._discrete:
            raise ValueError("the codes have no discrete latent to read a class from: give its class count in discrete")
        first = self.codes.shape[1] - sum(self._discrete)
        return self.codes[:, first : first + self._discrete[0]]

    def __getattr__(self, name: str) -> Tensor:
        raise ValueError("it needs a model: evaluate a checkpoint")


def evaluate(
    codes: ArrayLike,
    factors: ArrayLike | None = None,
    metrics: Sequence[str] | None = None,
    factor_names: Sequence[str] = (),
    factor_kinds: Sequence[str] = (),
    discrete: Sequence[int] = (),
    factor_bins: int = BINS,
    seed: int = 0,
    resamples: int | None = None,
    skip: bool = False,
) -> Evaluation:
    """Score codes from any program: `vaezoo evaluate --codes` in Python.

    Args:
        codes: Codes (N, D), probabilities of discrete latents last.
        factors: Factors (N, K) of the same examples, numbers or strings; NaN and "" mean unobserved. Without factors,
            only scores that need none are computed.
        metrics: Score names, with arguments as in `read_scores`. Defaults to the applicable default scores.
        factor_names: Names of the factors. Defaults to factor_0, factor_1, …
        factor_kinds: "categorical" or "ordered" for each factor. Defaults to categorical for strings and ordered for
            numbers.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
        factor_bins: Equal-width bins of ordered factors with more distinct values, for scores that need bins.
        seed: Seed of scores and intervals.
        resamples: Bootstrap resamples per interval; 0 for no intervals. Defaults to the number for each score in the
            catalogue.
        skip: Skip named metrics that do not apply instead of raising.

    Raises:
        ValueError: A named metric is unknown or needs a model, or the tables do not match.
    """
    table = torch.from_numpy(as_codes(codes))
    known = _factors(np.empty((len(table), 0)) if factors is None else factors, factor_names, factor_kinds, factor_bins)
    if len(known.places) != len(table):
        raise ValueError(
            f"codes holds {len(table)} rows and factors {len(known.places)}: pass one row of each per example"
        )
    given = Given(table, known, tuple(discrete))
    chosen = read_scores(metrics or [name for name, entry in METRICS.items() if entry.default])
    results: dict[str, Result] = {}
    skipped: dict[str, str] = {}
    facts = {"discrete": tuple(discrete), "categorical": categorical(known), "attribute_names": known.factor_names}
    for label, one in chosen.items():
        with fitting(label, skipped if skip or not metrics else None):
            if one.latents is not None:
                raise ValueError("codes have columns, no latent groups: leave the square brackets out")
            shell = build(one.name, seed, **one.arguments)
            if isinstance(shell, FittedMetric):
                raise ValueError("it is fitted on training images: evaluate a checkpoint")
            bind_known(shell, **facts)
            given.update(shell)
            pools = METRICS[one.name].resamples if resamples is None else resamples
            results[label] = labelled(score(shell, pools, seed), one)
            if (observed := len(shell.tables()[0])) < len(table):
                results[label].definition["images"] = observed  # the others lack a factor
    return warned_of_few(Evaluation(results, skipped, len(table)))


def _factors(values: ArrayLike, names: Sequence[str], kinds: Sequence[str], bins: int) -> Factors:
    """Number the values of factors, column by column."""
    table = np.asarray(values)
    if table.ndim != 2:
        raise ValueError(f"factors must have shape (rows, columns), got {table.shape}: pass one row for each example")
    if bins < 2:
        raise ValueError(f"factor_bins must be 2 or more, not {bins}")
    width = table.shape[1]
    names = tuple(names) or tuple(f"factor_{k}" for k in range(width))
    for what, given in {"factor_names": names, "factor_kinds": kinds or names}.items():
        if len(given) != width:
            raise ValueError(f"{what} has {len(given)} entries and factors {width} columns: give one each")
    if wrong := [kind for kind in kinds if kind not in ("categorical", "ordered", "periodic")]:
        raise ValueError(f"factor_kinds: {wrong[0]!r} is none of categorical, ordered and periodic")
    places, found = torch.full(table.shape, -1.0, dtype=torch.float64), []
    for k, name in enumerate(names):
        column, kind = _typed(table[:, k]), kinds[k] if kinds else "ordered"
        text = column.dtype.kind == "U"
        observed = column != "" if text else ~np.isnan(column)
        if not text and np.isinf(column).any():
            raise ValueError(f"factor {name} is infinite in row {int(np.isinf(column).argmax())}: give finite numbers")
        if observed.any():
            places[torch.from_numpy(observed), k] = torch.from_numpy(
                factor_places(column[observed], kind == "categorical", bins)[1]
            )
        found.append("categorical" if text else kind)
    return Factors(places, names, tuple(found))


def _typed(column: NDArray[Any]) -> NDArray[Any]:
    """A column of numbers where all its cells are numbers or empty, else of strings."""
    filled = np.where(column == "", "nan", column) if column.dtype.kind == "U" else column
    try:
        return filled.astype(np.float64)
    except ValueError:
        return column.astype(np.str_)
