"""Sample rows with one factor fixed, for the FactorVAE and BetaVAE scores."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vaezoo.metrics.functional.pool import Array, Labels

Rows = NDArray[np.intp]

CHUNK = 256  # votes at a time: their codes stay in the processor's cache


class Groups(NamedTuple):
    """The rows of a pool sorted by the value of each factor."""

    order: Rows  # (K, N): rows by factor value
    first: Rows  # (K, N): place in `order` where the group of a row starts
    size: Rows  # (K, N): rows in that group
    anchors: Rows  # (K, N): rows whose value another row shares come first
    shared: Rows  # (K,): how many of those there are


def group_rows(labels: Labels) -> Groups:
    """Sort the rows by each factor; works for incomplete grids too."""
    order = np.argsort(labels, axis=0, kind="stable").T
    counts = [np.bincount(label) for label in labels.T]
    first = np.stack([(np.cumsum(n) - n)[label] for n, label in zip(counts, labels.T, strict=True)])
    size = np.stack([n[label] for n, label in zip(counts, labels.T, strict=True)])
    anchors = np.argsort(size < 2, axis=1, kind="stable")
    return Groups(order, first, size, anchors, (size > 1).sum(axis=1))


def draw_anchors(groups: Groups, factor: Rows, shape: tuple[int, ...], rng: np.random.Generator) -> Rows:
    """Draw random rows whose value of `factor` other rows share; `factor` broadcasts to `shape`."""
    place = (rng.random(shape) * groups.shared[factor]).astype(np.intp)
    return np.asarray(groups.anchors.take(factor * groups.anchors.shape[1] + place))


def draw_fellows(groups: Groups, factor: Rows, anchor: Rows, shape: tuple[int, ...], rng: np.random.Generator) -> Rows:
    """Draw rows, with replacement, with the same value of `factor` as the row `anchor`."""
    start = factor * groups.order.shape[1]  # of the factor, once (K, N) is read as one line
    place = (rng.random(shape) * groups.size.take(start + anchor)).astype(np.intp)
    return np.asarray(groups.order.take(start + groups.first.take(start + anchor) + place))


def chunks(votes: int) -> Iterator[slice]:
    """Cut a number of votes into slices of `CHUNK`."""
    return (slice(start, start + CHUNK) for start in range(0, votes, CHUNK))


def variances(codes: Array, rows: Rows, starts: NDArray[np.intp]) -> Array:
    """Return the variance (ddof 1) of every latent over each vote's rows.

    A discrete latent uses the summed variance of its probabilities.

    Args:
        codes: Codes (N, D).
        rows: Rows of each vote (V, B).
        starts: First column of every latent (L,).

    Returns:
        Variances (V, L).
    """
    out = np.empty((len(rows), codes.shape[1]))
    for part in chunks(len(rows)):
        z = codes.take(rows[part].T, axis=0)  # (B, CHUNK, D): sums over the first axis are three times as fast
        z -= z.mean(axis=0)
        np.einsum("bvd,bvd->vd", z, z, out=out[part])
    return np.asarray(np.add.reduceat(out, starts, axis=1) / (rows.shape[1] - 1))


def distances(codes: Array, left: Rows, right: Rows, starts: NDArray[np.intp]) -> Array:
    """Return the mean absolute difference of every latent over each vote's pairs of rows (V, B), shape (V, L).

    A discrete latent uses the total variation distance of its probabilities.
    """
    out = np.empty((len(left), codes.shape[1]))
    for part in chunks(len(left)):
        z = codes.take(left[part].T, axis=0)  # (B, CHUNK, D)
        z -= codes.take(right[part].T, axis=0)
        np.abs(z, out=z).mean(axis=0, out=out[part])
    pooled = np.add.reduceat(out, starts, axis=1)
    pooled[:, np.diff(starts, append=codes.shape[1]) > 1] /= 2
    return np.asarray(pooled)
