"""Gradient boosting of shallow trees on binned codes, with impurity importances.

The trees, losses and importances of scikit-learn's `GradientBoostingClassifier`; what makes it fast is that splits are
sought between at most 128 bins of a code and for all classes at once. (Its `HistGradientBoostingClassifier` is as
fast, yet has no importances.)
"""

from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from vaezoo.metrics.functional.binning import digitise, equal_mass_edges
from vaezoo.metrics.functional.pool import Array, Labels

# Sums over thousands of rows, compared with one another: single precision halves the time and suffices.
Single = NDArray[np.float32]
Bins = NDArray[np.uint8]
Table = NDArray[Any]


class Binned(NamedTuple):
    """Codes of the training rows, and of the test rows after them, as bins."""

    bins: Bins  # (D, N + M)
    rows: Tensor  # (D * N,): training rows, those of one bin of one code side by side
    first: Tensor  # (D * B,): place in `rows` where a bin of a code starts
    counts: Single  # (D, B): how many lie in it
    weights: Single  # (N,): how often each training row counts


class Split(NamedTuple):
    """The best split of each node, for each class; arrays of shape (nodes, C)."""

    code: NDArray[np.intp]
    bin: Bins  # the last bin that goes left
    gain: Single  # decrease of the squared error


def bin_codes(codes: Array, test_codes: Array, weights: Labels | None = None, bins: int = 128) -> Binned:
    """Bin codes at the quantiles of the training rows, at most 256 bins a code.

    Args:
        codes: Codes of the training rows (N, D).
        test_codes: Codes of the test rows (M, D).
        weights: How often each training row counts (N,). Defaults to once.
        bins: Most bins of a code.
    """
    times = np.ones(len(codes), dtype=np.int64) if weights is None else weights
    edges = equal_mass_edges(np.repeat(codes, times, axis=0), bins)
    table = digitise(np.concatenate([codes, test_codes]), edges).T.astype(np.uint8)
    height, rows = max(map(len, edges)) + 1, len(codes)
    members = np.argsort(table[:, :rows], axis=1, kind="stable").astype(np.int32)
    filled = np.stack([np.bincount(column, minlength=height) for column in table[:, :rows]])
    first = (np.cumsum(filled) - filled.ravel()).astype(np.int32)
    counts = np.stack([np.bincount(column, times, minlength=height) for column in table[:, :rows]])
    places = torch.from_numpy(members.ravel()), torch.from_numpy(first)
    return Binned(table, *places, counts.astype(np.float32), times.astype(np.float32))


def boost(
    data: Binned, label: Labels, seed: int, trees: int = 100, depth: int = 3, rate: float = 0.1
) -> tuple[Array, Labels]:
    """Boost one tree a class and round (Friedman, 2001, Algorithm 6).

    Args:
        data: Binned codes of training and test rows.
        label: Classes of the training rows (N,).
        seed: Seed of the order in which equal splits are preferred.
        trees: Rounds.
        depth: Depth of a tree.
        rate: Learning rate.

    Returns:
        Importance of each code (D,), which sum to 1, and the predicted class of every row (N + M,).
    """
    rows, classes, rng = len(label), int(label.max()) + 1, np.random.default_rng(seed)
    target = (label == np.arange(classes)[:, None]).astype(np.float32)  # (C, N)
    share = target @ data.weights[:, None] / data.weights.sum()
    logits = np.repeat(np.log(share), data.bins.shape[1], axis=1)  # (C, N + M)
    importance = np.zeros(len(data.bins))
    for _ in range(trees):
        p = logits[:, :rows] - logits[:, :rows].max(axis=0)
        np.exp(p, out=p)
        p /= p.sum(axis=0)
        residual = np.subtract(target, p, out=p)
        leaf, gains = grow(data, residual, depth, rng)
        importance += gains
        cell = leaf + 2**depth * np.arange(classes)[:, None]  # one number a class and leaf
        value = rate * (classes - 1) / classes * leaf_values(cell[:, :rows], residual, data.weights, 2**depth * classes)
        logits += value.astype(np.float32).take(cell)
    total = importance.sum()
    return importance / total if total > 0 else importance, logits.argmax(axis=0)


def grow(data: Binned, residual: Single, depth: int, rng: np.random.Generator) -> tuple[Bins, Array]:
    """Grow one regression tree for each row of the residuals (C, N).

    Returns:
        The leaf of every row of codes (C, N + M) and the summed gain of each code (D,).
    """
    classes, rows = residual.shape
    sums = cumulated(data, residual * data.weights)[None]  # (nodes, C, D, B)
    counts = data.counts.cumsum(axis=1)[None, None]  # alike for all classes as yet
    leaf, gains = np.zeros((classes, data.bins.shape[1]), dtype=np.uint8), np.zeros(len(data.bins))
    nodes = np.ones((1, *leaf.shape), dtype=np.bool_)  # rows of codes that a node holds, (nodes, C, N + M)
    for level in range(depth):
        split = best_split(sums, counts, rng.permutation(len(data.bins)))
        gains += np.bincount(split.code.ravel(), split.gain.ravel(), minlength=len(data.bins))
        left = data.bins.take(split.code, axis=0) <= split.bin[:, :, None]
        left &= nodes
        leaf *= 2
        leaf += ~left.any(axis=0)
        if level + 1 < depth:
            nodes = children(left, nodes, np.logical_xor)
            # The right child is its parent less the left child: half the rows to sum.
            left_sums, left_counts = sums_and_counts(data, residual, left[:, :, :rows])
            sums, counts = children(left_sums, sums, np.subtract), children(left_counts, counts, np.subtract)
    return leaf, gains


def children(left: Table, parents: Table, subtract: np.ufunc) -> Table:
    """Put the children of each node side by side: the right one is the parent less the left one."""
    both = np.empty((len(left), 2, *left.shape[1:]), dtype=left.dtype)
    both[:, 0] = left
    subtract(parents, left, out=both[:, 1])
    return both.reshape(-1, *left.shape[1:])


def sums_and_counts(data: Binned, residual: Single, inside: NDArray[np.bool_]) -> Single:
    """Residuals (C, N) of the rows inside nodes (nodes, C, N), and how many, cumulated, (2, nodes, C, D, B)."""
    values = np.empty((2, *inside.shape), dtype=np.float32)
    values[1] = inside
    values[1] *= data.weights
    np.multiply(values[1], residual, out=values[0])
    return cumulated(data, values.reshape(-1, inside.shape[2])).reshape(*values.shape[:3], *data.counts.shape)


def cumulated(data: Binned, values: Single) -> Single:
    """Sum values (V, N) of the training rows over each code's bins up to every bin, shape (V, D, B)."""
    table = torch.from_numpy(np.ascontiguousarray(values.T))
    sums = F.embedding_bag(data.rows, table, data.first, mode="sum")  # (D * B, V)
    sums = sums.view(*data.counts.shape, -1).cumsum(dim=1)
    return np.ascontiguousarray(sums.numpy().transpose(2, 0, 1))


def best_split(sums: Single, counts: Single, order: NDArray[np.intp]) -> Split:
    """Find the split of greatest gain; ties go to the first code in `order`.

    Args:
        sums: Residuals of the rows up to a bin (nodes, C, D, B).
        counts: How many these are, of a shape that broadcasts to that.
        order: Codes in the order of preference.
    """
    total, count = sums[..., :1, -1:], counts[..., :1, -1:]
    spread = count - counts
    spread *= counts
    spread *= count
    np.copyto(spread, np.inf, where=spread == 0)  # nothing is gained where a side is empty
    gain = sums * count
    gain -= total * counts
    gain *= gain
    gain /= spread
    top = gain.max(axis=3)  # (nodes, C, D)
    code = order[top.take(order, axis=2).argmax(axis=2)]
    place = np.arange(code.size) * len(order) + code.ravel()
    last = gain.reshape(top.size, -1).take(place, axis=0).argmax(axis=1)
    return Split(code, last.astype(np.uint8).reshape(code.shape), top.take(place).reshape(code.shape))


def leaf_values(cell: NDArray[np.intp], residual: Single, weights: Single, cells: int) -> Array:
    """Take one Newton step in each leaf: sum of r over sum of |r|(1 - |r|), shape (cells,)."""
    place, size = cell.ravel(), np.abs(residual)
    numerator = np.bincount(place, (residual * weights).ravel(), minlength=cells)
    denominator = np.bincount(place, ((size - size * size) * weights).ravel(), minlength=cells)
    return np.divide(numerator, denominator, out=np.zeros(cells), where=denominator > 1e-150)
