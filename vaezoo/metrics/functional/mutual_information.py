"""Scores from the mutual information of binned codes and factors: MIG and modularity."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from vaezoo.metrics.functional.binning import equal_width, joint_counts
from vaezoo.metrics.functional.pool import (
    Array,
    Labels,
    Scores,
    as_labels,
    as_pool,
    categories,
    first_columns,
    top_two_gap,
    varying,
)


def binned(codes: Array, bins: int, discrete: Sequence[int] = ()) -> Labels:
    """Bin every latent (N, L): equal widths for continuous ones, the most probable class for discrete ones."""
    starts = first_columns(codes, discrete)
    classes = categories(codes, starts, discrete)
    continuous = codes[:, : len(starts) - len(discrete)]
    return np.concatenate([equal_width(continuous, bins), classes], axis=1) if continuous.size else classes


def mutual_information(bins: Labels, label: Labels) -> Array:
    """Return the mutual information, in nats, of each binned latent (N, L) with one factor (N,)."""
    joint = joint_counts(bins, label) / len(label)  # (L, bins, values)
    outer = joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True)
    terms = joint * np.log(np.divide(joint, outer, out=np.ones_like(joint), where=joint > 0))
    information = terms.sum(axis=(1, 2))
    return np.where(information > 1e-12, information, 0)  # rounding must not make a dead latent look informative


def information_table(bins: Labels, labels: Labels) -> Array:
    """Return the mutual information, in nats, of latents and factors, shape (L, K)."""
    return np.stack([mutual_information(bins, label) for label in labels.T], axis=1)


def entropy(label: Labels) -> float:
    """Return the entropy of one factor (N,), in nats."""
    share = np.bincount(label) / len(label)
    share = share[share > 0]
    return float(-(share * np.log(share)).sum())


def mig(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    variant: Literal["reference", "adaptive"] = "reference",
    num_bins: int = 20,
    discrete: Sequence[int] = (),
) -> Scores:
    """Mutual information gap (Chen et al., 2018).

    Args:
        codes: Codes (N, D).
        factors: Factors (N, K).
        variant: "reference" cuts every latent into `num_bins` bins, so a factor with more values cannot reach 1;
            "adaptive" uses one bin per factor value if there are more values than bins.
        num_bins: Bins of a continuous latent.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """
    z, v = as_pool(codes, factors, rows=num_bins)
    labels = as_labels(v)
    sizes = [num_bins if variant == "reference" else max(num_bins, int(label.max()) + 1) for label in labels.T]
    tables = {size: binned(z, size, discrete) for size in set(sizes)}
    information = [mutual_information(tables[size], label) for size, label in zip(sizes, labels.T, strict=True)]
    gaps = top_two_gap(np.stack(information, axis=1)) / [entropy(label) for label in labels.T]
    return {f"mig_{num_bins}" if variant == "reference" else "mig_adaptive": float(np.mean(gaps))}


def modularity_by_code(table: Array) -> Array:
    """Return the modularity of each latent from its mutual information with every factor, shape (L, K)."""
    squares = table**2
    best = squares.max(axis=1)
    if table.shape[1] == 1:  # one factor cannot be mixed with another
        return np.asarray(best > 0, dtype=np.float64)
    rest = squares.sum(axis=1) - best
    share = np.divide(rest, best * (table.shape[1] - 1), out=np.ones(len(table)), where=best > 0)
    return np.asarray(1 - share)


def modularity(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    variant: Literal["reference", "active"] = "reference",
    num_bins: int = 20,
    discrete: Sequence[int] = (),
) -> Scores:
    """Modularity (Ridgeway and Mozer, 2018).

    Args:
        codes: Codes (N, D).
        factors: Factors (N, K).
        variant: "reference" averages over all latents, constant ones count as 0; "active" ignores constant latents.
        num_bins: Bins of a continuous latent.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """
    z, v = as_pool(codes, factors, rows=num_bins)
    bins = binned(z, num_bins, discrete)
    score = modularity_by_code(information_table(bins, as_labels(v)))
    active = varying(bins.astype(np.float64)) | (variant == "reference")
    return {f"modularity_{variant}": float(score[active].mean()) if active.any() else 0.0}
