"""Rows that a bootstrap resample repeats: fitted once, and counted as often as they occur."""

import numpy as np
import pytest

from vaezoo.metrics import functional as F
from vaezoo.metrics.functional.binning import digitise, equal_mass, equal_mass_edges
from vaezoo.metrics.functional.boosting import bin_codes, boost
from vaezoo.metrics.functional.dci import completeness, disentanglement
from vaezoo.metrics.functional.irs import _quantile
from vaezoo.metrics.functional.logistic import fit_logistic
from vaezoo.metrics.functional.pool import Pool, as_labels, distinct, hold_out


def pool(rows: int = 1_200) -> tuple[np.ndarray, np.ndarray]:
    """Codes that mix three factors, with noise."""
    rng = np.random.default_rng(0)
    factors = rng.integers((4, 3, 5), size=(rows, 3))
    mixed = factors @ rng.normal(size=(3, 4)) + 0.8 * rng.normal(size=(rows, 4))
    return np.concatenate([mixed, rng.normal(size=(rows, 1))], axis=1), factors


def repeated(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a resample, and how often each row of the pool occurs among them."""
    picked = np.random.default_rng(1).integers(rows, size=rows)
    return picked, np.bincount(picked, minlength=rows)


def test_equal_rows_are_found_in_the_order_of_the_first_and_counted() -> None:
    found = distinct(np.array([[0.5, 1], [-0.0, 2], [0.5, 1], [0.5, 1], [0.0, 2]]), np.array([[3], [4], [3], [9], [4]]))
    np.testing.assert_array_equal(found.rows, [0, 1, 3])
    np.testing.assert_array_equal(found.times, [2, 2, 1])


def test_boosted_trees_count_a_row_as_often_as_its_weight() -> None:
    codes, factors = pool()
    picked, times = repeated(1_200)
    kept = np.flatnonzero(times)
    ((importance, guess),) = boost(bin_codes(codes[picked], codes), [factors[picked, 0]], seed=0, trees=20)
    data = bin_codes(codes[kept], codes, times[kept])
    ((weighted, weighted_guess),) = boost(data, [factors[kept, 0]], seed=0, trees=20)
    np.testing.assert_allclose(weighted, importance, atol=1e-4)
    assert (weighted_guess[len(kept) :] == guess[1_200:]).mean() > 0.995
    ((unweighted, _),) = boost(bin_codes(codes[kept], codes), [factors[kept, 0]], seed=0, trees=20)
    assert np.abs(unweighted - importance).max() > 1e-3


def test_factors_that_are_boosted_together_do_not_touch_one_another() -> None:
    codes, factors = pool()
    data, labels = bin_codes(codes[:800], codes[800:]), list(factors[:800].T)
    for label, (importance, guess) in zip(labels, boost(data, labels, seed=0, trees=20), strict=True):
        ((alone, guess_alone),) = boost(data, [label], seed=0, trees=20)
        np.testing.assert_allclose(importance, alone, atol=1e-12)
        np.testing.assert_array_equal(guess, guess_alone)


def test_logistic_regression_counts_a_row_as_often_as_its_weight() -> None:
    codes, factors = pool()
    picked, times = repeated(1_200)
    kept = np.flatnonzero(times)
    found = fit_logistic(codes[kept], factors[kept, 0], times[kept])
    np.testing.assert_allclose(found.weights, fit_logistic(codes[picked], factors[picked, 0]).weights, atol=1e-5)


def test_intervals_of_dci_are_those_of_fits_to_every_row_of_a_resample() -> None:
    def every_row(codes: np.ndarray, factors: np.ndarray, test: Pool) -> dict[str, float]:
        part = hold_out(codes, factors, test)
        data, hits, table = bin_codes(part.codes, part.test_codes), [], []
        for label, test_label in zip(part.labels.T, part.test_labels.T, strict=True):
            ((importance, guess),) = boost(data, [label], seed=0)
            hits.append((guess[len(label) :] == test_label).mean())
            table.append(importance)
        importances = np.stack(table, axis=1)
        scores = disentanglement(importances), completeness(importances), float(np.mean(hits))
        return dict(zip(("disentanglement", "completeness", "informativeness"), scores, strict=True))

    codes, factors = pool()
    test = codes[800:], factors[800:]
    old = F.bootstrap(every_row, codes[:800], factors[:800], test=test, resamples=10, method="normal")
    new = F.bootstrap(F.dci, codes[:800], factors[:800], test=test, resamples=10, method="normal")
    for name, interval in old.items():
        reach = (interval.high - interval.low) / 2
        assert tuple(new[f"dci_fast_{name}"]) == pytest.approx(tuple(interval), abs=0.1 * reach)


@pytest.mark.parametrize("rows", [40, 1_000])
def test_bins_of_equal_mass_are_those_between_their_edges(rows: int) -> None:
    rng = np.random.default_rng(0)
    table = np.stack([rng.normal(size=rows), rng.integers(7, size=rows), np.zeros(rows)], axis=1)
    edges = equal_mass_edges(table, 64)
    np.testing.assert_array_equal(equal_mass(table, 64), digitise(table, edges))
    for column, found in zip(table.T, edges, strict=True):
        values = np.unique(column)
        if len(values) > 64:
            values = np.unique(np.quantile(column, np.linspace(0, 1, 64), method="nearest"))
        np.testing.assert_array_equal(found, (values[1:] + values[:-1]) / 2)


@pytest.mark.parametrize("quantile", [0.3, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("rows", [1, 2, 7, 300])
def test_quantiles_are_those_of_numpy_to_the_bit(rows: int, quantile: float) -> None:
    table = np.random.default_rng(rows).normal(size=(rows, 5))
    np.testing.assert_array_equal(_quantile(table, quantile), np.quantile(table, quantile, axis=0))


@pytest.mark.parametrize("values", [[0, 1, 2], [7, 3, 500], [-2, 0, 5], [0.5, 1, 2], [1e300, -1e300, 0], [0, 3, 4.5]])
def test_the_values_of_a_factor_are_numbered_in_increasing_order(values: list[float]) -> None:
    column = np.array(values)[np.random.default_rng(0).integers(len(values), size=(50, 1))]
    np.testing.assert_array_equal(as_labels(column)[:, 0], np.unique(column, return_inverse=True)[1].ravel())
