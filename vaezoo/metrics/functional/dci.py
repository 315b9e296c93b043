"""Disentanglement, completeness and informativeness from the importance of each code for each factor."""

from collections.abc import Sequence
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from vaezoo.metrics.functional.boosting import bin_codes, boost
from vaezoo.metrics.functional.pool import Array, Holdout, Pool, Scores, distinct, first_columns, hold_out
from vaezoo.metrics.functional.threads import free_cores, in_threads


class Fit(NamedTuple):
    """Prediction of one factor from the codes."""

    importance: Array  # of each code (D,)
    train: float  # accuracy
    tested: float


def dci(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    variant: Literal["fast", "reference"] = "fast",
    test: Pool | None = None,
    test_fraction: float = 1 / 3,
    seed: int = 0,
    jobs: int = -1,
    discrete: Sequence[int] = (),
) -> Scores:
    """DCI scores (Eastwood and Williams, 2018).

    Args:
        codes: Codes (N, D).
        factors: Factors (N, K), each predicted as a category.
        variant: "fast" boosts trees on binned codes; "reference" fits scikit-learn's `GradientBoostingClassifier`.
        test: Codes and factors for informativeness. Defaults to held-out rows.
        test_fraction: Share of rows to hold out.
        seed: Seed of the split and of the trees.
        jobs: Number of factors fitted in parallel threads; -1 is one per core.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """
    part = hold_out(codes, factors, test, test_fraction, seed)
    fits = (fit_fast if variant == "fast" else fit_reference)(part, seed, jobs)
    table = _table(fits, part, discrete)
    name = f"dci_{variant}"
    return {
        f"{name}_disentanglement": disentanglement(table),
        f"{name}_completeness": completeness(table),
        f"{name}_informativeness": float(np.mean([fit.tested for fit in fits])),
        f"{name}_informativeness_train": float(np.mean([fit.train for fit in fits])),
        f"{name}_seed": seed,
    }


def importance_table(codes: ArrayLike, factors: ArrayLike, *, seed: int = 0, discrete: Sequence[int] = ()) -> Array:
    """Importance of each latent for each factor, fast variant, (L, K). Same arguments as `dci`."""
    part = hold_out(codes, factors, None, 1 / 3, seed)
    return _table(fit_fast(part, seed, -1), part, discrete)


def _table(fits: Sequence[Fit], part: Holdout, discrete: Sequence[int]) -> Array:
    """Importances side by side, those of a discrete latent's probabilities added up, (L, K)."""
    columns = np.stack([fit.importance for fit in fits], axis=1)
    return np.asarray(np.add.reduceat(columns, first_columns(part.codes, discrete), axis=0))


def concentration(table: Array) -> Array:
    """Return 1 minus the normalised entropy of each row of importances; 1 if there is one column."""
    if table.shape[1] == 1:
        return np.ones(len(table))
    share = table + 1e-11
    share = share / share.sum(axis=1, keepdims=True)
    return np.asarray(1 + (share * np.log(share)).sum(axis=1) / np.log(table.shape[1]))


def disentanglement(table: Array) -> float:
    """Average the concentration of the latents over factors, weighted by importance (L, K)."""
    table = table if table.sum() > 0 else np.ones_like(table)
    return float(concentration(table) @ table.sum(axis=1) / table.sum())


def completeness(table: Array) -> float:
    """Average the concentration of the factors over latents, weighted by importance (L, K)."""
    return disentanglement(table.T)


def fit_fast(part: Holdout, seed: int, jobs: int) -> list[Fit]:
    """Fit `boost` to each factor. Equal rows, as in a bootstrap resample, are fitted as one that weighs more."""
    train, test = distinct(part.codes, part.labels), distinct(part.test_codes, part.test_labels)
    data = bin_codes(part.codes[train.rows], part.test_codes[test.rows], train.times)
    labels, test_labels = part.labels[train.rows].T, part.test_labels[test.rows].T

    def fit(factors: list[int]) -> list[Fit]:
        fits = []
        for k, (importance, guess) in zip(factors, boost(data, list(labels[factors]), seed), strict=True):
            right, tested = guess[: len(train.rows)] == labels[k], guess[len(train.rows) :] == test_labels[k]
            scores = np.average(right, weights=train.times), np.average(tested, weights=test.times)
            fits.append(Fit(importance, *scores))
        return fits

    order = _longest_first(part)
    # Threads take turns to call NumPy, so few calls on many factors are faster than a thread per factor.
    groups = min(free_cores(jobs), len(order))
    dealt = [sorted(order[i::groups]) for i in range(groups)]
    found = dict(zip(chain(*dealt), chain(*in_threads(fit, dealt, jobs)), strict=True))
    return [found[k] for k in range(len(order))]


def fit_reference(part: Holdout, seed: int, jobs: int) -> list[Fit]:
    """Fit the reference's estimator to each factor."""
    from sklearn.ensemble import GradientBoostingClassifier

    def fit(k: int) -> Fit:
        label, test_label = part.labels[:, k], part.test_labels[:, k]
        model = GradientBoostingClassifier(random_state=seed).fit(part.codes, label)
        return Fit(model.feature_importances_, model.score(part.codes, label), model.score(part.test_codes, test_label))

    order = _longest_first(part)
    fits = in_threads(fit, order, jobs)
    return [fits[i] for i in np.argsort(order)]


def _longest_first(part: Holdout) -> list[int]:
    """Order the factors by the time they take: those of most classes first."""
    return [int(k) for k in np.argsort(-part.labels.max(axis=0), kind="stable")]
