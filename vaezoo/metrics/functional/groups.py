"""Latents that are scored as one."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from vaezoo.metrics.functional.pool import Array, Labels

Groups = Sequence[Sequence[int]]


def group_latents(
    codes: Array, active: NDArray[np.bool_], groups: Groups, correlation: float | None
) -> list[NDArray[np.intp]]:
    """Return the groups of two or more active latents, by column.

    Args:
        codes: Continuous latents (N, D).
        active: Which latents are active (D,), or more; the others belong to no group.
        groups: Columns that form a group each.
        correlation: Columns whose absolute correlation is this or more are joined as well.
    """
    latents = codes.shape[1]
    named = [k for group in groups for k in group]
    if len(set(named)) < len(named) or not all(0 <= k < latents for k in named):
        raise ValueError(f"groups={groups} must name each of the {latents} continuous latents, from 0, once at most")
    if correlation is not None and not 0 < correlation <= 1:
        raise ValueError(f"correlation={correlation} must be above 0 and at most 1")
    alive = np.flatnonzero(active[:latents])
    linked = np.zeros((latents, latents), dtype=bool)
    for group in groups:
        linked[np.ix_(group, group)] = True
    linked = linked[np.ix_(alive, alive)]
    if correlation is not None and len(alive) > 1:
        # Rounding may leave the correlation of two copies just below 1.
        linked |= np.abs(np.corrcoef(codes[:, alive], rowvar=False)) >= correlation - 1e-12
    count, member = connected_components(linked, directed=False)
    found = [alive[member == group] for group in range(count)]
    return [members for members in found if len(members) > 1]


def discriminant(codes: Array, label: Labels) -> Array:
    """Project codes (N, D) on the direction that separates the classes best (Fisher, 1936), each class weighing 1.

    Returns:
        Projections (N, 1).
    """
    count = np.bincount(label)
    means = np.stack([codes[label == c].mean(axis=0) for c in range(len(count))])
    between = means - means.mean(axis=0)
    inside = (codes - means[label]) / np.sqrt(count[label])[:, None]
    size, axes = np.linalg.eigh(inside.T @ inside + between.T @ between)  # of the total scatter, which may be singular
    kept = size > 1e-12 * size[-1]
    white = axes[:, kept] / np.sqrt(size[kept])
    _, _, directions = np.linalg.svd(between @ white, full_matrices=False)
    return np.asarray(codes @ white @ directions[:1].T)
