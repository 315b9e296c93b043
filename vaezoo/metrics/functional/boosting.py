"""Gradient boosting of shallow trees on binned codes, with impurity importances.

The trees, losses and importances of scikit-learn's `GradientBoostingClassifier`; what makes it fast is that splits are
sought between at most 128 bins of a code and for all classes at once. (Its `HistGradientBoostingClassifier` is as
fast, yet has no importances.)
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vaezoo.metrics.functional.binning import digitise, equal_mass_edges
from vaezoo.metrics.functional.pool import Array, Labels

# Sums over thousands of rows, compared with one another: single precision halves the time and suffices.
Single = NDArray[np.float32]
Bins = NDArray[np.uint8]


class Binned(NamedTuple):
    """Codes of the training rows, and of the test rows after them, as bins."""

    bins: Bins  # (D, N + M)
    members: csr_matrix  # (D * B, N): which training rows lie in which bin of which code
    counts: Single  # (D, B): how many


class Split(NamedTuple):
    """The best split of each node, for each class; arrays of shape (nodes, C)."""

    code: NDArray[np.intp]
    bin: Bins  # the last bin that goes left
    gain: Single  # decrease of the squared error


def bin_codes(codes: Array, test_codes: Array, bins: int = 128) -> Binned:
    """Bin codes at the quantiles of the training rows, at most 256 bins a code."""
    edges = equal_mass_edges(codes, bins)
    table = digitise(np.concatenate([codes, test_codes]), edges)
    height, (rows, width) = max(map(len, edges)) + 1, codes.shape
    cell = table[:rows] + np.arange(width) * height
    entries = (np.ones(cell.size, dtype=np.float32), (cell.ravel(), np.repeat(np.arange(rows), width)))
    members = csr_matrix(entries, shape=(width * height, rows))
    counts = np.diff(members.indptr).reshape(width, height).astype(np.float32)
    return Binned(np.ascontiguousarray(table.T.astype(np.uint8)), members, counts)


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
    logits = np.repeat(np.log(target.mean(axis=1, keepdims=True)), data.bins.shape[1], axis=1)  # (C, N + M)
    importance = np.zeros(len(data.bins))
    for _ in range(trees):
        p = np.exp(logits[:, :rows] - logits[:, :rows].max(axis=0))
        residual = target - p / p.sum(axis=0)
        leaf, gains = grow(data, residual, depth, rng)
        importance += gains
        value = rate * (classes - 1) / classes * leaf_values(leaf[:, :rows], residual, 2**depth)
        for c, values in enumerate(value.astype(np.float32)):
            logits[c] += values[leaf[c]]
    total = importance.sum()
    return importance / total if total > 0 else importance, logits.argmax(axis=0)


def grow(data: Binned, residual: Single, depth: int, rng: np.random.Generator) -> tuple[Bins, Array]:
    """Grow one regression tree for each row of the residuals (C, N).

    Returns:
        The leaf of every row of codes (C, N + M) and the summed gain of each code (D,).
    """
    classes, rows = residual.shape
    leaf = np.zeros((classes, data.bins.shape[1]), dtype=np.uint8)
    gains = np.zeros(len(data.bins))
    sums = histograms(data, residual[None])
    counts = np.broadcast_to(data.counts[None, :, :, None], sums.shape)
    for level in range(depth):
        if level:
            # The right child is its parent less the left child: half the rows to sum.
            left = np.arange(0, 2**level, 2, dtype=np.uint8)
            inside = (leaf[:, :rows] == left[:, None, None]).astype(np.float32)  # (parents, C, N)
            left_sums, left_counts = np.split(histograms(data, np.concatenate([inside * residual, inside])), 2)
            sums = np.stack([left_sums, sums - left_sums], axis=1).reshape(-1, *sums.shape[1:])
            counts = np.stack([left_counts, counts - left_counts], axis=1).reshape(-1, *counts.shape[1:])
        split = best_split(sums, counts, rng.permutation(len(data.bins)))
        gains += np.bincount(split.code.ravel(), split.gain.ravel(), minlength=len(data.bins))
        right = np.zeros_like(leaf, dtype=np.bool_)
        for node in range(2**level):
            right |= (data.bins[split.code[node]] > split.bin[node][:, None]) & (leaf == node)
        leaf = 2 * leaf + right
    return leaf, gains


def histograms(data: Binned, values: Single) -> Single:
    """Sum values (V, C, N) of the training rows over each bin of each code, shape (V, D, B, C)."""
    sums = data.members @ values.reshape(-1, values.shape[2]).T
    return np.asarray(sums.reshape(*data.counts.shape, *values.shape[:2]).transpose(2, 0, 1, 3))


def best_split(sums: Single, counts: Single, order: NDArray[np.intp]) -> Split:
    """Find the split of greatest gain from histograms (nodes, D, B, C); ties go to the first code in `order`."""
    left, left_count = sums[:, order].cumsum(axis=2), counts[:, order].cumsum(axis=2)
    total, count = left[:, :1, -1:], left_count[:, :1, -1:]
    product = left_count * (count - left_count)
    gain = np.where(product > 0, (left * count - total * left_count) ** 2 / np.maximum(product * count, 1), 0)
    nodes, width, bins, classes = gain.shape
    gain = gain.reshape(nodes, width * bins, classes)
    best = gain.argmax(axis=1)
    top = np.take_along_axis(gain, best[:, None], axis=1)[:, 0]
    return Split(order[best // bins], (best % bins).astype(np.uint8), top)


def leaf_values(leaf: Bins, residual: Single, leaves: int) -> Array:
    """Take one Newton step in each leaf: sum of r over sum of |r|(1 - |r|), shape (C, leaves)."""
    classes = len(residual)
    cell = (leaf + leaves * np.arange(classes)[:, None]).ravel()
    size = np.abs(residual)
    numerator = np.bincount(cell, residual.ravel(), minlength=leaves * classes)
    denominator = np.bincount(cell, (size * (1 - size)).ravel(), minlength=leaves * classes)
    value = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 1e-150)
    return np.asarray(value.reshape(classes, leaves))
