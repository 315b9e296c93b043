"""The solvers written here, against the libraries and the optimality conditions they must meet."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

from vaezoo.metrics.functional.beta_vae import support_vectors
from vaezoo.metrics.functional.binning import equal_width
from vaezoo.metrics.functional.boosting import bin_codes, boost
from vaezoo.metrics.functional.explicitness import area_under_curve
from vaezoo.metrics.functional.logistic import fit_logistic
from vaezoo.metrics.functional.svm import fit_one_feature


def blobs(classes: int, rows: int = 400, width: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(classes)
    y = rng.choice(classes, size=rows, p=np.arange(1, classes + 1) / np.arange(1, classes + 1).sum())
    return rng.normal(size=(classes, width))[y] + rng.normal(size=(rows, width)), y


@pytest.mark.parametrize("classes", [2, 5])
def test_logistic_regression_is_that_of_scikit_learn(classes: int) -> None:
    x, y = blobs(classes)
    model = LogisticRegression(tol=1e-10, max_iter=10_000).fit(x, y)
    found = fit_logistic(x, y, steps=10_000)
    logits = found.logits(x)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(p, model.predict_proba(x), atol=2e-3)


@pytest.mark.parametrize("classes", [2, 5])
def test_logistic_regression_without_penalty_and_with_weights_is_that_of_scikit_learn(classes: int) -> None:
    x, y = blobs(classes, rows=60 * classes)
    model = LogisticRegression(C=np.inf, class_weight="balanced", tol=1e-10, max_iter=10_000).fit(x, y)
    weights = len(y) / classes / np.bincount(y)[y]
    logits = fit_logistic(x, y, weights, steps=10_000, penalty=0).logits(x)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(p, model.predict_proba(x), atol=2e-3)
    logits = fit_logistic(x, y, weights, steps=10_000).logits(x)
    penalised = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert np.abs(penalised - p).max() > 5e-3


@pytest.mark.parametrize("classes", [2, 6])
def test_support_vectors_of_one_feature_are_those_of_liblinear(classes: int) -> None:
    x, y = blobs(classes, width=1)
    model = LinearSVC(C=0.01, class_weight="balanced", dual=False, tol=1e-10).fit(x, y)
    slope, intercept = fit_one_feature(x[:, 0], y)
    ours = slice(1, None) if classes == 2 else slice(None)
    np.testing.assert_allclose(slope[ours], model.coef_[:, 0], atol=1e-6)
    np.testing.assert_allclose(intercept[ours], model.intercept_, atol=1e-6)


def test_hinge_machine_solves_its_dual() -> None:
    """One class against the rest: min |Σ αyx|²/2 - Σα over 0 ≤ α ≤ 0.01, the intercept a feature of ones."""
    x, y = blobs(3)
    ones = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    scores = []
    for c in range(3):
        signed = ones * np.where(y == c, 1, -1)[:, None]

        def dual(a: np.ndarray, signed: np.ndarray = signed) -> tuple[float, np.ndarray]:
            w = a @ signed
            return w @ w / 2 - a.sum(), signed @ w - 1

        solution = minimize(dual, np.zeros(len(x)), jac=True, method="L-BFGS-B", bounds=[(0, 0.01)] * len(x))
        scores.append(ones @ (solution.x @ signed))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guess = support_vectors(x, y, x, 0)
    assert (guess == np.argmax(scores, axis=0)).mean() > 0.99


@pytest.mark.parametrize("classes", [3, 6])
def test_boosting_is_that_of_scikit_learn_where_bins_lose_nothing(classes: int) -> None:
    x, y = blobs(classes, rows=1_500)
    codes = np.round(8 * x) / 8  # fewer values than bins
    model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(codes[:1_000], y[:1_000])
    ((importance, guess),) = boost(bin_codes(codes[:1_000], codes[1_000:]), [y[:1_000]], seed=0, trees=20)
    np.testing.assert_allclose(importance, model.feature_importances_, atol=5e-3)
    assert (guess == model.predict(codes)).mean() > 0.98


def test_boosting_shares_the_importance_of_equal_codes() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=2_000)
    codes = np.stack([y, -0.7 * y, rng.normal(size=2_000)], axis=1)
    ((importance, guess),) = boost(bin_codes(codes[:1_500], codes[1_500:]), [y[:1_500]], seed=0)
    np.testing.assert_allclose(importance, [0.5, 0.5, 0], atol=0.1)
    assert (guess == y).all()


def test_bins_are_those_of_numpy_histogram_with_values_on_the_edges() -> None:
    table = np.stack([np.arange(41) / 40, np.full(41, 0.37), np.random.default_rng(0).normal(size=41)], axis=1)
    for column, bins in zip(table.T, equal_width(table, 20).T, strict=True):
        np.testing.assert_array_equal(bins, np.digitize(column, np.histogram(column, 20)[1][:-1]) - 1)


def test_area_under_curve_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=300)
    score = np.round(rng.dirichlet(np.ones(4), size=300) + 0.2 * np.eye(4)[y], 1)  # with ties
    assert area_under_curve(score, y) == pytest.approx(roc_auc_score(np.eye(4)[y], score, average="macro"), abs=1e-12)
    lacking = y != 3
    expected = roc_auc_score(np.eye(4)[y[lacking], :3], score[lacking, :3], average="macro")
    assert area_under_curve(score[lacking], y[lacking]) == pytest.approx(expected, abs=1e-12)
