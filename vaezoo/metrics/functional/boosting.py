"""Gradient boosting of shallow trees on binned codes, with impurity importances.

The trees, losses and importances of scikit-learn's `GradientBoostingClassifier`; what makes it fast is that splits are
sought between at most 128 bins of a code and for all classes at once. (Its `HistGradientBoostingClassifier` is as
fast, yet has no importances.)
"""

from collections.abc import Sequence
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
Bytes = NDArray[np.uint8]
Table = NDArray[Any]


class Binned(NamedTuple):
    """Codes of the training rows, and of the test rows after them, as bins."""

    height: int  # N + M
    below: Bytes  # (D * B, (N + M) / 8): rows up to a bin of a code, one bit each
    rows: Tensor  # (D * N,): training rows, those of one bin of one code side by side
    first: Tensor  # (D * B,): place in `rows` where a bin of a code starts
    counts: Single  # (D, B): how many lie in it
    weights: Single  # (N,): how often each training row counts


class Split(NamedTuple):
    """The best split of each node, for each class; arrays of shape (nodes, C)."""

    code: NDArray[np.intp]
    bin: NDArray[np.intp]  # the last bin that goes left
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
    below = np.concatenate([np.packbits(column <= np.arange(height)[:, None], axis=1) for column in table])
    return Binned(table.shape[1], below, *places, counts.astype(np.float32), times.astype(np.float32))


def boost(
    data: Binned, labels: Sequence[Labels], seed: int, trees: int = 100, depth: int = 3, rate: float = 0.1
) -> list[tuple[Array, Labels]]:
    """Boost one tree a class and round (Friedman, 2001, Algorithm 6), for each of several factors.

    A factor's results do not depend on the others.

    Args:
        data: Binned codes of training and test rows.
        labels: For each factor, the classes of the training rows (N,).
        seed: Seed of the order in which equal splits are preferred.
        trees: Rounds.
        depth: Depth of a tree.
        rate: Learning rate.

    Returns:
        For each factor, importance of each code (D,), which sum to 1, and the predicted class of every row (N + M,).
    """
    rows, leaves, rng = len(labels[0]), 2**depth, np.random.default_rng(seed)
    sizes = [int(label.max()) + 1 for label in labels]
    parts = [slice(end - size, end) for size, end in zip(sizes, np.cumsum(sizes), strict=True)]
    hits = [label == np.arange(size)[:, None] for label, size in zip(labels, sizes, strict=True)]
    target = np.concatenate(hits).astype(np.float32)  # (C, N), the classes of all factors one below the other
    share = target @ data.weights[:, None] / data.weights.sum()
    logits = np.repeat(np.log(share), data.height, axis=1)  # (C, N + M)
    importance, terms = np.zeros((len(target), len(data.counts))), np.empty((2, *target.shape), dtype=np.float32)
    first = leaves * np.arange(len(target))[:, None]
    rates = np.concatenate([np.full((size, 1), rate * (size - 1) / size) for size in sizes])
    for _ in range(trees):
        for part in parts:
            newton_terms(logits[part, :rows], target[part], data.weights, out=terms[:, part])
        leaf, gains = grow(data, terms[0], depth, rng)
        importance += gains
        steps = rates * newton_steps(leaf[:, :rows], terms, leaves)
        logits += steps.astype(np.float32).take(leaf + first)
    shares = [importance[part].sum(axis=0) for part in parts]
    return [(s / (s.sum() or 1), logits[part].argmax(axis=0)) for s, part in zip(shares, parts, strict=True)]


def newton_terms(logits: Single, target: Single, weights: Single, out: Single) -> None:
    """Write residuals r of one factor's softmax and |r|(1 - |r|), both times the weights, to `out` (2, C, N)."""
    p = logits - logits.max(axis=0)
    np.exp(p, out=p)
    p /= p.sum(axis=0)
    np.subtract(target, p, out=out[0])
    size = np.abs(out[0], out=p)
    np.subtract(size, size * size, out=out[1])
    out *= weights


def newton_steps(leaf: Bytes, terms: Single, leaves: int) -> Array:
    """Newton step in each leaf of each class's tree: sum of r over sum of |r|(1 - |r|), shape (C, leaves)."""
    places = torch.from_numpy(leaf).long().expand(2, -1, -1)
    zeros = torch.zeros(2, len(leaf), leaves, dtype=torch.float64)
    sums = zeros.scatter_add_(2, places, torch.from_numpy(terms).double()).numpy()
    return np.asarray(np.divide(sums[0], sums[1], out=np.zeros_like(sums[0]), where=sums[1] > 1e-150))


def grow(data: Binned, residual: Single, depth: int, rng: np.random.Generator) -> tuple[Bytes, Array]:
    """Grow one regression tree for each row of the weighted residuals (C, N).

    Returns:
        The leaf of every row of codes (C, N + M) and the summed gain of each code (C, D).
    """
    classes, (codes, bins) = len(residual), data.counts.shape
    sums = cumulated(data, residual)[None]  # (nodes, C, D, B)
    counts = data.counts.cumsum(axis=1)[None, None]  # alike for all classes as yet
    leaf, gains = np.zeros((classes, data.height), dtype=np.uint8), np.zeros(classes * codes)
    nodes = np.full((1, classes, data.below.shape[1]), 255, dtype=np.uint8)  # bits of the rows that a node holds
    for level in range(depth):
        split = best_split(sums, counts, rng.permutation(codes))
        place = split.code + codes * np.arange(classes)
        gains += np.bincount(place.ravel(), split.gain.ravel(), minlength=gains.size)
        left = data.below.take(split.code * bins + split.bin, axis=0)
        left &= nodes
        leaf *= 2
        leaf += np.unpackbits(~np.bitwise_or.reduce(left, axis=0), axis=1, count=data.height)
        if level + 1 < depth:
            nodes = children(left, nodes, np.bitwise_xor)
            # The right child is its parent less the left child: half the rows to sum.
            left_sums, left_counts = sums_and_counts(data, residual, left)
            sums, counts = children(left_sums, sums, np.subtract), children(left_counts, counts, np.subtract)
    return leaf, gains.reshape(classes, codes)


def children(left: Table, parents: Table, subtract: np.ufunc) -> Table:
    """Put the children of each node side by side: the right one is the parent less the left one."""
    both = np.empty((len(left), 2, *left.shape[1:]), dtype=left.dtype)
    both[:, 0] = left
    subtract(parents, left, out=both[:, 1])
    return both.reshape(-1, *left.shape[1:])


def sums_and_counts(data: Binned, residual: Single, inside: Bytes) -> Single:
    """Cumulate the weighted residuals (C, N) of the rows inside nodes, and how many, (2, nodes, C, D, B).

    The rows inside are bits, (nodes, C, (N + M) / 8).
    """
    values = np.empty((2, len(inside), *residual.shape), dtype=np.float32)
    values[1] = np.unpackbits(inside, axis=2, count=residual.shape[1])
    np.multiply(values[1], residual, out=values[0])
    values[1] *= data.weights
    return cumulated(data, values.reshape(-1, residual.shape[1])).reshape(*values.shape[:3], *data.counts.shape)


def cumulated(data: Binned, values: Single) -> Single:
    """Sum values (V, N) of the training rows over each code's bins up to every bin, shape (V, D, B)."""
    table = torch.from_numpy(np.ascontiguousarray(values.T))
    sums = F.embedding_bag(data.rows, table, data.first, mode="sum")  # (D * B, V)
    out = torch.empty(len(values), *data.counts.shape)  # the order of axes that is fast to compare bins in
    torch.cumsum(sums.view(*data.counts.shape, -1).permute(2, 0, 1), dim=2, out=out)
    return out.numpy()


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
    last = gain.argmax(axis=3)  # (nodes, C, D)
    top = gain.reshape(last.size, -1)[np.arange(last.size), last.ravel()].reshape(last.shape)
    code = order[top.take(order, axis=2).argmax(axis=2)]
    place = np.arange(code.size) * len(order) + code.ravel()
    last, top = last.take(place).reshape(code.shape), top.take(place).reshape(code.shape)
    return Split(code, last, top)
