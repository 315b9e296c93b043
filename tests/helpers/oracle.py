"""Codes over a factor grid of sizes (3, 6, 10, 8, 8), with the scores that disentanglement_lib gives them."""

import json
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.helpers.paths import DATA

SIZES = (3, 6, 10, 8, 8)
GRID = np.stack(np.unravel_index(np.arange(np.prod(SIZES)), SIZES), axis=1)
NAMES = ("perfect", "rotation", "noise", "shared", "duplicate", "dead")


class Case(NamedTuple):
    table: NDArray[np.float64]  # the code of every point of the grid
    codes: NDArray[np.float64]
    factors: NDArray[np.int64]
    test: tuple[NDArray[np.float64], NDArray[np.int64]]
    expected: dict[str, Any]


@cache
def arrays() -> dict[str, NDArray[Any]]:
    with np.load(DATA / "metrics_oracle.npz", allow_pickle=False) as file:
        return dict(file)


@cache
def dci_arrays() -> dict[str, NDArray[Any]]:
    """Importances (5 seeds, D, K) of the reference's estimator and the scores that it makes of them."""
    with np.load(DATA / "metrics_dci.npz", allow_pickle=False) as file:
        return dict(file)


@cache
def expected() -> dict[str, Any]:
    return dict(json.loads((DATA / "metrics_oracle.json").read_text()))


@cache
def case(name: str) -> Case:
    table = arrays()[f"{name}/table"].astype(np.float64)
    train, test = arrays()["train_rows"], arrays()["test_rows"]
    return Case(table, table[train], GRID[train], (table[test], GRID[test]), expected()[name])


def grid_sample(sizes: tuple[int, ...], rows: int = 10_000, seed: int = 0) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(sizes, size=(rows, len(sizes)))


def standardised(factors: NDArray[np.int64]) -> NDArray[np.float64]:
    return (factors - factors.mean(axis=0)) / factors.std(axis=0)
