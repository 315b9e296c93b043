"""Separated attribute predictability: the gap between the best and second-best latent for each factor."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vaezoo.metrics.functional.binning import equal_mass, joint_counts
from vaezoo.metrics.functional.groups import Groups, discriminant, group_latents
from vaezoo.metrics.functional.pool import (
    Array,
    Holdout,
    Labels,
    Pool,
    Scores,
    as_codes,
    as_labels,
    as_pool,
    categories,
    first_columns,
    hold_out,
    top_two_gap,
    varying,
)
from vaezoo.metrics.functional.svm import fit_one_feature

CUTS = 256  # candidate thresholds of a latent


def sap(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    categorical: Sequence[int] = (),
    threshold: float = 0.05,
    groups: Groups = (),
    correlation: float | None = None,
    discrete: Sequence[int] = (),
) -> Scores:
    """SAP score of DIP-VAE (Kumar et al., 2018, Sec. 3): R² for ordered factors, balanced accuracy for categories.

    A category with C classes is predicted from a latent by C − 1 thresholds, fitted on the same rows. As the paper
    suggests, latents that belong together can be scored as one group: an ordered factor uses the linear fit on all its
    latents; a category uses thresholds on their best linear discriminant, or on the best latent. The gap is then
    between the two best groups.

    Args:
        codes: Codes (N, D).
        factors: Factors (N, K).
        categorical: Columns of the factors that are categories; the others are ordered.
        threshold: Latents with a smaller standard deviation are inactive and score 0 ("close to 0" in the paper).
        groups: Columns of continuous latents to score as one; other latents stand alone.
        correlation: Latents with at least this correlation, directly or through others, form a group. Defaults to no
            such groups.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """
    z, v = as_pool(codes, factors, rows=3)
    if not all(0 <= k < np.shape(factors)[1] for k in categorical):
        raise ValueError(f"categorical={tuple(categorical)} names columns outside the {np.shape(factors)[1]} factors")
    starts = first_columns(z, discrete)
    is_category = np.isin(np.arange(np.shape(factors)[1]), categorical)[varying(as_codes(factors))]
    table = np.empty((len(starts), v.shape[1]))
    table[:, ~is_category] = explained_variance(z, v[:, ~is_category], starts)
    if is_category.any():
        table[:, is_category] = threshold_accuracy(z, as_labels(v[:, is_category]), starts, discrete)
    active = np.add.reduceat(z.var(axis=0, ddof=1), starts) > threshold**2
    table[~active] = 0
    for members in group_latents(z[:, : len(starts) - len(discrete)], active, groups, correlation):
        best = table[members].max(axis=0)
        table[members] = 0  # one row speaks for all
        table[members[0]] = np.maximum(best, _as_one(z[:, members], v, is_category))
    return {"sap_dip": float(top_two_gap(table).mean())}


def _as_one(codes: Array, factors: Array, is_category: NDArray[np.bool_]) -> Array:
    """Return how well several latents together tell each factor, shape (K,)."""
    start = np.zeros(1, dtype=np.intp)  # all columns are one latent
    scores = explained_variance(codes, factors, start)
    for k in np.flatnonzero(is_category):
        label = as_labels(factors[:, [k]])
        scores[:, k] = threshold_accuracy(discriminant(codes, label[:, 0]), label, start, ())[:, 0]
    return scores.reshape(-1)


def explained_variance(codes: Array, factors: Array, starts: NDArray[np.intp]) -> Array:
    """Return R² of the linear fit of each factor on each latent, shape (L, K)."""
    z, v = codes - codes.mean(axis=0), factors - factors.mean(axis=0)
    total = (v**2).sum(axis=0)
    scores = []
    for columns in np.split(z, starts[1:], axis=1):
        basis, size, _ = np.linalg.svd(columns, full_matrices=False)
        basis = basis[:, size > 1e-12 * max(size[0], 1e-300)] if size[0] > 0 else basis[:, :0]
        scores.append(((basis.T @ v) ** 2).sum(axis=0) / total)
    return np.stack(scores)


def threshold_accuracy(codes: Array, labels: Labels, starts: NDArray[np.intp], discrete: Sequence[int]) -> Array:
    """Return the best balanced accuracy of each category read from each latent, shape (L, K)."""
    continuous = codes[:, : len(starts) - len(discrete)]
    bins = equal_mass(continuous, CUTS) if continuous.size else None
    classes = categories(codes, starts, discrete)
    columns = []
    for label in labels.T:
        share = 1 / (np.bincount(label) * (label.max() + 1))  # what one right row adds to the balanced accuracy
        parts = [] if bins is None else [_best_intervals(joint_counts(bins, label) * share)]
        if len(discrete):
            parts.append((joint_counts(classes, label) * share).max(axis=2).sum(axis=1))
        columns.append(np.concatenate(parts))
    return np.stack(columns, axis=1)


def _best_intervals(gain: Array) -> Array:
    """Cut each latent's bins into at most C intervals of one class each, for the greatest summed gain (L, B, C)."""
    latents, bins, classes = gain.shape
    best = np.full((latents, classes, classes), -np.inf)  # by intervals used, less one, and class of the last
    best[:, 0] = 0
    for b in range(bins):
        opened = best.max(axis=2)[:, :-1, None]
        best[:, 1:] = np.maximum(best[:, 1:], opened)
        best += gain[:, b, None]
    return np.asarray(best.max(axis=(1, 2)))


def sap_svm(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: Pool | None = None,
    test_fraction: float = 1 / 3,
    seed: int = 0,
    discrete: Sequence[int] = (),
) -> Scores:
    """SAP score of the reference library: test accuracy of a linear SVM on one latent, every factor a category.

    Use it to compare with published numbers. It depends on the scale of the codes and is about 0.4 for perfect codes.

    Args:
        codes: Codes (N, D).
        factors: Factors (N, K).
        test: Codes and factors to score on. Defaults to held-out rows.
        test_fraction: Share of rows to hold out.
        seed: Seed of the split.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """
    table = svm_accuracy(hold_out(codes, factors, test, test_fraction, seed), discrete)
    return {"sap_reference": float(top_two_gap(table).mean()), "sap_reference_seed": seed}


def svm_accuracy(part: Holdout, discrete: Sequence[int] = ()) -> Array:
    """Return the test accuracy of each factor predicted from each latent alone, shape (L, K)."""
    starts = first_columns(part.codes, discrete)
    classes, test_classes = (categories(z, starts, discrete) for z in (part.codes, part.test_codes))
    table = np.empty((len(starts), part.labels.shape[1]))
    for k, (y, test_y) in enumerate(zip(part.labels.T, part.test_labels.T, strict=True)):
        for d in range(len(starts) - len(discrete)):
            slope, intercept = fit_one_feature(part.codes[:, d], y)
            guess = (part.test_codes[:, d, None] * slope + intercept).argmax(axis=1)
            table[d, k] = (guess == test_y).mean()
        for g in range(len(discrete)):
            votes = joint_counts(classes[:, g : g + 1], y)[0] / np.bincount(y)
            guess = votes.argmax(axis=1)[test_classes[:, g].clip(max=len(votes) - 1)]
            table[len(starts) - len(discrete) + g, k] = (guess == test_y).mean()
    return table
