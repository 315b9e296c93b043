"""Interventional robustness: how much a latent moves while its best factor is held fixed."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vaezoo.metrics.functional.binning import equal_width
from vaezoo.metrics.functional.pool import Array, Labels, Scores, as_pool, first_columns


def irs(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    quantile: float = 0.99,
    num_bins: int = 20,
    discrete: Sequence[int] = (),
) -> Scores:
    """Interventional robustness score (Suter et al., 2019), latents weighted by their range.

    Args:
        codes: Codes (N, D).
        factors: Factors (N, K), cut into equal-width bins, so continuous factors work too.
        quantile: Quantile of the deviations within a factor value; 1 is the paper's maximum.
        num_bins: Bins of a factor.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """
    z, v = as_pool(codes, factors)
    if not 0 < quantile <= 1:
        raise ValueError(f"quantile must lie in (0, 1], got {quantile}")
    starts = first_columns(z, discrete)
    reach = deviations(z, starts).max(axis=0)  # (L,)
    moving = np.maximum.reduceat(np.ptp(z, axis=0), starts) > 0
    if not moving.any():
        return {f"irs_{100 * quantile:g}": 0.0}
    table = robustness(z, equal_width(v, num_bins), starts, quantile)[moving]
    return {f"irs_{100 * quantile:g}": float(np.average(table.max(axis=1), weights=reach[moving]))}


def robustness(codes: Array, labels: Labels, starts: NDArray[np.intp], quantile: float) -> Array:
    """Return 1 minus the mean deviation within a factor's values over the largest deviation, shape (L, K)."""
    reach = deviations(codes, starts).max(axis=0)
    columns = []
    for label in labels.T:
        order = np.argsort(label, kind="stable")
        cuts = np.flatnonzero(np.diff(label[order])) + 1
        groups = np.split(codes[order], cuts)
        inner = [_quantile(deviations(group, starts), quantile) for group in groups]
        columns.append(np.mean(inner, axis=0))
    deviation = np.stack(columns, axis=1)
    return np.asarray(1 - deviation / np.where(reach > 0, reach, 1)[:, None])


def deviations(codes: Array, starts: NDArray[np.intp]) -> Array:
    """Return the distance of every latent from its mean (N, L): total variation for a discrete one."""
    gap = np.abs(codes - codes.mean(axis=0))
    if len(starts) == codes.shape[1]:
        return np.asarray(gap)
    return np.asarray(np.add.reduceat(gap, starts, axis=1) / np.where(np.diff(starts, append=codes.shape[1]) > 1, 2, 1))


def _quantile(table: Array, quantile: float) -> Array:
    """Return what `numpy.quantile` does for each column (N, L), with less ado."""
    place = quantile * (len(table) - 1)
    below = int(place)
    above = min(below + 1, len(table) - 1)
    ordered = np.partition(np.ascontiguousarray(table.T), [below, above], axis=1)
    low, high, share = ordered[:, below], ordered[:, above], place - below
    # The order of numpy's own interpolation.
    return np.asarray(low + (high - low) * share if share < 0.5 else high - (high - low) * (1 - share))
