"""SAP of latents that are scored as one."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tests.helpers.oracle import grid_sample, standardised
from vaezoo.metrics import functional as F
from vaezoo.metrics.functional.groups import discriminant

FACTORS = grid_sample((11, 11), 40_000)
CLEAN = standardised(FACTORS)
NOISE = np.random.default_rng(0).normal(size=40_000)
# Two latents share factor 0: R² is 0.8 from either, 1 from both, and their correlation 0.6.
SHARED = np.stack([CLEAN[:, 0] + NOISE / 2, CLEAN[:, 1], CLEAN[:, 0] - NOISE / 2], axis=1)


def sap(codes: np.ndarray, factors: np.ndarray = FACTORS, **options: object) -> float:
    return F.sap(codes, factors, **options)["sap_dip"]  # type: ignore[arg-type]


def test_a_group_is_one_rival() -> None:
    assert sap(SHARED) == pytest.approx(1 / 2, abs=0.01)
    assert sap(SHARED, groups=[[0, 2]]) == pytest.approx(1, abs=0.01)
    assert sap(SHARED, groups=[[0, 1, 2]]) == pytest.approx(1, abs=0.01)  # whose only rival is 0
    assert sap(SHARED, groups=[[0, 1]]) == pytest.approx(1 / 2, abs=0.01)  # latent 2 is as good for factor 0


def test_correlated_latents_find_each_other() -> None:
    assert sap(SHARED, correlation=0.65) == sap(SHARED)
    assert sap(SHARED, correlation=0.55) == pytest.approx(sap(SHARED, groups=[[0, 2]]), abs=1e-12)
    copies = np.concatenate([CLEAN, -3 * CLEAN], axis=1)
    assert sap(copies) == pytest.approx(0, abs=1e-9)
    assert sap(copies, correlation=1.0) == pytest.approx(1, abs=1e-3)


def test_inactive_latents_help_no_group() -> None:
    small = SHARED * [1, 1, 0.01]
    assert sap(small, groups=[[0, 2]]) == pytest.approx((0.8 + 1) / 2, abs=0.01)
    assert sap(small, groups=[[0, 2]], threshold=0.001) == pytest.approx(1, abs=0.01)


def test_a_group_tells_a_category_by_its_discriminant() -> None:
    """The sign of a sum of two: three in four from either, all from both."""
    codes = np.random.default_rng(1).normal(size=(20_000, 2))
    category = (codes.sum(axis=1, keepdims=True) > 0).astype(int)
    assert sap(codes, category, categorical=[0]) == pytest.approx(0, abs=0.02)
    assert sap(codes[:, :1], category, categorical=[0]) == pytest.approx(0.75, abs=0.01)
    assert sap(codes, category, categorical=[0], groups=[[0, 1]]) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_discriminant_is_that_of_scikit_learn_on_classes_of_one_size(classes: int) -> None:
    """Class c has 60 / (c + 1) rows; repeated c + 1 times, all have 60."""
    rng = np.random.default_rng(classes)
    label = np.concatenate([np.full(60 // (c + 1), c) for c in range(classes)])
    codes = (rng.normal(size=(classes, 3))[label] + rng.normal(size=(len(label), 3))) @ rng.normal(size=(3, 3))
    model = LinearDiscriminantAnalysis(solver="eigen").fit(codes.repeat(label + 1, axis=0), label.repeat(label + 1))
    theirs = model.transform(codes)[:, 0]
    assert abs(np.corrcoef(discriminant(codes, label)[:, 0], theirs)[0, 1]) == pytest.approx(1, abs=1e-9)
    twice = np.concatenate([codes, codes[:, :1]], axis=1)  # a singular scatter
    assert abs(np.corrcoef(discriminant(twice, label)[:, 0], theirs)[0, 1]) == pytest.approx(1, abs=1e-6)
