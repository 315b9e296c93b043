"""The input of every score: codes (N, D) and factors (N, K); checks, numbering and splits."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Scores = dict[str, float]
Pool = tuple[ArrayLike, ArrayLike]


class Holdout(NamedTuple):
    """A pool split in two; a test label is -1 if its value is missing from training."""

    codes: Array  # (N, D)
    labels: Labels  # (N, K)
    test_codes: Array  # (M, D)
    test_labels: Labels  # (M, K)


class Distinct(NamedTuple):
    """The first of equal rows, in their order, and how often each occurs."""

    rows: NDArray[np.intp]
    times: Labels


def positive(**counts: int) -> None:
    """Raise ValueError for a named count below 1."""
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} must be 1 or more, not {count}")


def as_codes(codes: ArrayLike, rows: int = 2, name: str = "codes") -> Array:
    """Check one table of numbers and return it in float64.

    Args:
        codes: Table of shape (N, D).
        rows: Smallest number of rows.
        name: Name of the table in error messages.
    """
    table = np.asarray(codes, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(f"{name} must have shape (rows, columns), got {table.shape}: pass one row for each example")
    if len(table) < rows:
        raise ValueError(f"{name} holds {len(table)} rows, this score needs at least {rows}: pass more examples")
    finite = np.isfinite(table)
    if not finite.all():
        broken = np.flatnonzero(~finite.all(axis=0)).tolist()
        raise ValueError(f"{name} holds NaN or infinity in columns {broken}: check the model that produced them")
    return table


def as_pool(codes: ArrayLike, factors: ArrayLike, rows: int = 2) -> tuple[Array, Array]:
    """Check codes and factors together; drop constant factors, such as colour in dSprites."""
    z, v = as_codes(codes, rows), as_codes(factors, rows, "factors")
    if len(z) != len(v):
        raise ValueError(f"codes holds {len(z)} rows and factors {len(v)}: pass one row of factors for each code")
    moving = varying(v)
    if not moving.any():
        raise ValueError("factors holds one constant value in every column: pass examples that differ in a factor")
    return z, v[:, moving]


def varying(table: Array) -> NDArray[np.bool_]:
    """Mark the columns that take more than one value; exact, where a variance is 1e-34 for a constant 0.1."""
    return np.asarray(np.ptp(table, axis=0) > 0)


def as_labels(factors: Array) -> Labels:
    """Number the values of each factor 0, 1, … in increasing order."""
    columns = []
    for k, column in enumerate(factors.T):
        label = _numbers(column)
        if label.max() + 1 == len(column):
            raise ValueError(
                f"factors column {k} (of those that vary) never repeats a value: bin it, or pass more examples"
            )
        columns.append(label)
    return np.stack(columns, axis=1)


def _numbers(column: Array) -> Labels:
    """Number the values of one factor; small whole numbers, as most factors are, need no sorting."""
    if column.min() >= 0 and column.max() < 2 * len(column):
        whole = column.astype(np.int64)
        if (whole == column).all():
            number = np.cumsum(np.bincount(whole) > 0) - 1
            return np.asarray(number[whole])
    return np.unique(column, return_inverse=True)[1].reshape(-1).astype(np.int64)


def in_own_order(*tables: Array) -> tuple[Array, ...]:
    """Sort the rows by their bytes, so a seed gives the same result for any order of batches or ranks."""
    order = np.argsort(_as_bytes(*tables), kind="stable")
    return tuple(table[order] for table in tables)


def distinct(*tables: Array | Labels) -> Distinct:
    """Find equal rows of tables side by side."""
    _, first, times = np.unique(_as_bytes(*tables), return_index=True, return_counts=True)
    order = np.argsort(first)
    return Distinct(first[order], times[order])


def _as_bytes(*tables: Array | Labels) -> NDArray[np.void]:
    # Adding zero turns -0.0 into 0.0, whose bytes differ.
    rows = np.ascontiguousarray(np.concatenate(tables, axis=1) + 0.0)
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).reshape(-1)


def hold_out(
    codes: ArrayLike, factors: ArrayLike, test: Pool | None, test_fraction: float = 1 / 3, seed: int = 0
) -> Holdout:
    """Set rows aside for testing.

    Args:
        codes: Codes (N, D).
        factors: Factors (N, K).
        test: Codes and factors to test on. Defaults to held-out rows.
        test_fraction: Share of rows to hold out, between 0 and 1.
        seed: Seed of the split.
    """
    if test is not None:
        z, v = as_pool(codes, factors)
        other_z, other_v = as_codes(test[0], 1, "test codes"), as_codes(test[1], 1, "test factors")
        if other_z.shape[1] != z.shape[1] or other_v.shape[1] != np.shape(factors)[1] or len(other_z) != len(other_v):
            raise ValueError("test must hold codes and factors of equal length, with the columns of the training pool")
        return _numbered(z, v, other_z, other_v[:, varying(as_codes(factors))])
    if not 0 < test_fraction < 1:
        raise ValueError(f"test_fraction must lie between 0 and 1, got {test_fraction}")
    z, v = in_own_order(*as_pool(codes, factors, rows=10))
    order = np.random.default_rng(seed).permutation(len(z))
    cut = max(1, round(len(z) * test_fraction))
    seen, unseen = order[cut:], order[:cut]
    return _numbered(z[seen], v[seen], z[unseen], v[unseen])


def _numbered(codes: Array, factors: Array, test_codes: Array, test_factors: Array) -> Holdout:
    test_labels = np.full(test_factors.shape, -1, dtype=np.int64)
    for k in range(factors.shape[1]):
        values = np.unique(factors[:, k])
        place = np.searchsorted(values, test_factors[:, k]).clip(max=len(values) - 1)
        test_labels[:, k] = np.where(values[place] == test_factors[:, k], place, -1)
    return Holdout(codes, as_labels(factors), test_codes, test_labels)


def first_columns(codes: Array, discrete: Sequence[int]) -> NDArray[np.intp]:
    """Return the first column of every latent.

    A continuous latent has one column, a discrete latent one column per class; discrete latents come last.

    Args:
        codes: Codes (N, D).
        discrete: Number of classes of each discrete latent, in order.
    """
    continuous = codes.shape[1] - sum(discrete)
    if continuous < 0 or any(classes < 2 for classes in discrete):
        raise ValueError(f"discrete={tuple(discrete)} does not fit {codes.shape[1]} columns: give the class counts")
    starts = np.concatenate([np.arange(continuous), continuous + np.cumsum([0, *discrete])[:-1]]).astype(np.intp)
    sums = np.add.reduceat(codes, starts, axis=1)[:, continuous:] if discrete else np.ones(0)
    if (np.abs(sums - 1) > 1e-2).any():
        raise ValueError(f"discrete={tuple(discrete)}: the last columns of codes are not probabilities that sum to 1")
    return starts


def categories(codes: Array, starts: NDArray[np.intp], discrete: Sequence[int]) -> Labels:
    """Return the most probable class of every discrete latent, shape (N, number of discrete latents)."""
    first = starts[len(starts) - len(discrete) :]
    chosen = [codes[:, s : s + classes].argmax(axis=1) for s, classes in zip(first, discrete, strict=True)]
    return np.stack(chosen, axis=1) if chosen else np.empty((len(codes), 0), dtype=np.int64)


def top_two_gap(table: Array) -> Array:
    """Return best minus second best of each column of (latents, factors); a lone latent is compared with 0."""
    ordered = np.sort(np.vstack([table, np.zeros(table.shape[1])]), axis=0)
    return np.asarray(ordered[-1] - ordered[-2])
