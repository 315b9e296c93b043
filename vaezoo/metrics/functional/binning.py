"""Bins of continuous codes and counts over them."""

from typing import Literal

import numpy as np

from vaezoo.metrics.functional.pool import Array, Labels


def equal_width(table: Array, bins: int) -> Labels:
    """Bin each column into `bins` intervals of one width, as `numpy.histogram` cuts them."""
    low, high = table.min(axis=0), table.max(axis=0)
    flat = low == high  # numpy widens an empty range by a half on both sides
    edges = np.linspace(np.where(flat, low - 0.5, low), np.where(flat, high + 0.5, high), bins + 1)[:-1]  # (bins, D)
    return digitise(table, list(edges[1:].T), side="right")


def equal_mass_edges(table: Array, bins: int) -> list[Array]:
    """Cut each column between neighbouring values, into at most `bins` parts of about as many rows each."""
    edges = []
    for column in table.T:
        values = np.unique(column)
        if len(values) > bins:
            values = np.unique(np.quantile(column, np.linspace(0, 1, bins), method="nearest"))
        edges.append((values[1:] + values[:-1]) / 2)
    return edges


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
    cell = (np.arange(latents) * height + bins) * width + label[:, None]
    counts = np.bincount(cell.ravel(), minlength=latents * height * width)
    return counts.reshape(latents, height, width).astype(np.float64)
