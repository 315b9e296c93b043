"""Disentanglement, completeness and informativeness from the importance of each code for each factor."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from vaezoo.metrics.functional.boosting import bin_codes, boost
from vaezoo.metrics.functional.pool import Array, Holdout, Labels, Pool, Scores, first_columns, hold_out


def dci(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    variant: Literal["fast", "reference"] = "fast",
    test: Pool | None = None,
    test_fraction: float = 1 / 3,
    seed: int = 0,
    jobs: int = 1,
    discrete: Sequence[int] = (),
) -> Scores:
    """DCI scores (Eastwood and Williams, 2018, Sec. 2).

    Args:
        codes: Codes (N, D).
        factors: Factors (N, K), each predicted as a category.
        variant: "fast" boosts trees on binned codes; "reference" fits scikit-learn's `GradientBoostingClassifier`.
        test: Codes and factors that informativeness is measured on; without them a share of the rows is held out.
        test_fraction: That share.
        seed: Seed of the split and of the trees.
        jobs: Factors fitted at a time.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """
    part = hold_out(codes, factors, test, test_fraction, seed)
    importance, train, tested = (fit_fast if variant == "fast" else fit_reference)(part, seed, jobs)
    table = np.add.reduceat(importance, first_columns(part.codes, discrete), axis=0)  # (L, K)
    name = f"dci_{variant}"
    return {
        f"{name}_disentanglement": disentanglement(table),
        f"{name}_completeness": completeness(table),
        f"{name}_informativeness": tested,
        f"{name}_informativeness_train": train,
        f"{name}_seed": seed,
    }


def concentration(table: Array) -> Array:
    """Return 1 less the normalised entropy of each row of importances; one column alone counts 1."""
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


def fit_fast(part: Holdout, seed: int, jobs: int) -> tuple[Array, float, float]:
    """Return the importances (D, K), training and test accuracy of `boost`."""
    data = bin_codes(part.codes, part.test_codes)

    def fit(label: Labels, test_label: Labels) -> tuple[Array, float, float]:
        importance, guess = boost(data, label, seed)
        train, tested = guess[: len(label)] == label, guess[len(label) :] == test_label
        return importance, float(train.mean()), float(tested.mean())

    return _each_factor(fit, part, jobs)


def fit_reference(part: Holdout, seed: int, jobs: int) -> tuple[Array, float, float]:
    """Return the importances (D, K), training and test accuracy of the reference's estimator."""
    from sklearn.ensemble import GradientBoostingClassifier

    def fit(label: Labels, test_label: Labels) -> tuple[Array, float, float]:
        model = GradientBoostingClassifier(random_state=seed).fit(part.codes, label)
        return model.feature_importances_, model.score(part.codes, label), model.score(part.test_codes, test_label)

    return _each_factor(fit, part, jobs)


def _each_factor(
    fit: Callable[[Labels, Labels], tuple[Array, float, float]], part: Holdout, jobs: int
) -> tuple[Array, float, float]:
    from sklearn.utils.parallel import Parallel, delayed

    labels = zip(part.labels.T, part.test_labels.T, strict=True)
    importance, train, tested = zip(
        *Parallel(n_jobs=jobs, prefer="threads")(delayed(fit)(*pair) for pair in labels), strict=True
    )
    return np.stack(importance, axis=1), float(np.mean(train)), float(np.mean(tested))
