"""Bins of continuous codes and counts over them."""

from functools import cache
from typing import Literal

import numpy as np

from vaezoo.metrics.functional.pool import Array, Labels

FEW = 32  # bins: up to here, comparing all rows with every edge is faster than searching the edges for every row


def equal_width(table: Array, bins: int) -> Labels:
    """Bin each column into `bins` intervals of one width, as `numpy.histogram` cuts them."""
    low, high = table.min(axis=0), table.max(axis=0)
    flat = low == high  # numpy widens an empty range by a half on both sides
    edges = np.linspace(np.where(flat, low - 0.5, low), np.where(flat, high + 0.5, high), bins + 1)[1:-1]  # (., D)
    if bins > FEW:
        return digitise(table, list(edges.T), side="right")
    columns, passed = np.ascontiguousarray(table.T), np.zeros(table.T.shape, dtype=np.uint8)
    for edge in edges:
        passed += columns >= edge[:, None]
    return passed.T.astype(np.int64)


def equal_mass_edges(table: Array, bins: int) -> list[Array]:
    """Cut each column between neighbouring values, into at most `bins` parts of about as many rows each."""
    return [_edges_between(np.sort(column), bins) for column in table.T]


def equal_mass(table: Array, bins: int) -> Labels:
    """Bin each column at those edges."""
    columns = np.empty(table.T.shape, dtype=np.int64)
    for column, binned in zip(table.T, columns, strict=True):
        order = np.argsort(column)
        ordered = column[order]
        # Sorted rows are searched for edges: there are far fewer edges than rows.
        ends = np.searchsorted(ordered, _edges_between(ordered, bins), side="right")
        binned[order] = np.repeat(np.arange(len(ends) + 1), np.diff(ends, prepend=0, append=len(order)))
    return columns.T


def _edges_between(ordered: Array, bins: int) -> Array:
    values = ordered[np.append(True, ordered[1:] > ordered[:-1])]
    if len(values) > bins:
        values = np.unique(ordered[_quantile_places(len(ordered), bins)])
    return np.asarray((values[1:] + values[:-1]) / 2)


@cache
def _quantile_places(rows: int, bins: int) -> Labels:
    """Places of evenly spaced quantiles among sorted rows."""
    return np.quantile(np.arange(rows), np.linspace(0, 1, bins), method="nearest").astype(np.int64)


def digitise(table: Array, edges: list[Array], side: Literal["left", "right"] = "left") -> Labels:
    """Number the bin of every entry; `edges` are the inner ones, column by column."""
    columns = [np.searchsorted(e, column, side=side) for e, column in zip(edges, table.T, strict=True)]
    return np.stack(columns, axis=1).astype(np.int64)


def joint_counts(bins: Labels, label: Labels) -> Array:
    """Count rows by latent, bin and factor value.

    Args:
        bins: Binned latents (N, L).
        label: Values of one factor (N,).

    Returns:
        Counts of shape (L, bins, values).
    """
    latents, height, width = bins.shape[1], int(bins.max()) + 1, int(label.max()) + 1
    cell = bins * width
    cell += label[:, None]
    cell += np.arange(latents) * height * width
    counts = np.bincount(cell.ravel(order="K"), minlength=latents * height * width)
    return counts.reshape(latents, height, width).astype(np.float64)
