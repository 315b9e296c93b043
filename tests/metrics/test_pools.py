"""Pools that are not a full grid of continuous codes: discrete latents, categories, dead codes, odd shapes."""

from collections.abc import Callable
from functools import partial
from itertools import combinations, permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier

from tests.helpers.oracle import grid_sample, standardised
from tests.helpers.supervised import SUPERVISED
from vaezoo.metrics import functional as F
from vaezoo.metrics.functional.irs import deviations
from vaezoo.metrics.functional.pool import hold_out, in_own_order
from vaezoo.metrics.functional.sap import threshold_accuracy
from vaezoo.metrics.functional.votes import distances, variances

Codes = NDArray[np.float64]


def mixed_pool(rows: int = 3_000) -> tuple[Codes, NDArray[np.int64]]:
    """Make two continuous latents, and shape as the probabilities of one discrete latent in an order of its own."""
    factors = grid_sample((4, 6, 3), rows)
    shape = np.eye(3)[np.array([2, 0, 1])[factors[:, 2]]]
    return np.concatenate([standardised(factors[:, :2]), 0.9 * shape + 0.1 / 3], axis=1), factors


@pytest.mark.parametrize("name", [name for name in SUPERVISED if name != "beta_vae_dip"])
def test_a_discrete_latent_counts_as_one(name: str) -> None:
    codes, factors = mixed_pool()
    arguments = {} if name == "explicitness" else {"discrete": (3,)}
    if name == "sap_dip":
        arguments["categorical"] = (2,)
    best = SUPERVISED[name](codes, factors, **arguments)[name]
    # Balanced accuracy starts from chance: 1/3 for shape.
    assert best == pytest.approx(1 - 0.13 if name == "sap_dip" else 1, abs=0.02)


def test_discrete_latents_in_the_other_scores() -> None:
    codes, factors = mixed_pool(20_000)
    assert F.gaussian_total_correlation(codes, discrete=(3,))["gaussian_total_correlation"] < 1e-3
    assert F.gaussian_total_correlation(codes)["gaussian_total_correlation"] == np.inf  # probabilities sum to 1
    assert F.gaussian_wasserstein_correlation(codes, discrete=(3,))["gaussian_wasserstein_correlation"] < 1e-3
    assert F.code_mutual_information(codes, discrete=(3,))["code_mutual_information_20"] < 2e-3
    assert F.active_units(codes, discrete=(3,)) == {"active_units": 3}
    svm = F.sap_svm(codes, factors, discrete=(3,))["sap_reference"]
    assert svm > F.sap_svm(codes, factors)["sap_reference"] + 0.1


def test_a_discrete_latent_moves_by_total_variation() -> None:
    """From (1, 0, 0) to (0, 0, 1) is a distance of 1, and summed variances are those of the three columns."""
    codes = np.array([[2.0, 1, 0, 0], [5.0, 0, 0, 1]])
    starts = np.array([0, 1])
    left, right = np.array([[0, 0]]), np.array([[0, 1]])
    np.testing.assert_allclose(distances(codes, left, right, starts), [[1.5, 0.5]])
    np.testing.assert_allclose(variances(codes, right, starts), [[4.5, 1.0]])
    np.testing.assert_allclose(deviations(codes, starts), [[1.5, 0.5], [1.5, 0.5]])


def test_an_incomplete_grid_and_float_values_score_as_the_grid_does() -> None:
    factors = grid_sample((3, 4, 6), 4_000)
    kept = factors[:, 0] + factors[:, 1] != 4  # two of twelve cells are missing
    codes, values = standardised(factors)[kept], 0.1 * factors[kept] + 0.5
    dependent = ("mig_20", "mig_adaptive", "sap_dip", "dci_fast_disentanglement")  # on factors that tell nothing
    dependent += ("infomec_modularity", "infomec_compactness")
    for name, score in SUPERVISED.items():
        if name not in dependent:
            assert score(codes, values)[name] == pytest.approx(1, abs=0.02), name
        assert score(codes, values) == pytest.approx(score(codes, factors[kept]), abs=1e-12), name


def test_votes_skip_the_values_of_a_single_row() -> None:
    factors = grid_sample((3, 4), 1_000)
    factors[:100] = np.arange(200).reshape(100, 2) + 10
    scores = F.factor_vae_score(standardised(factors), factors, votes=3_000, test_votes=1_000)
    assert scores["factor_vae_reference"] == 1


@pytest.mark.parametrize("name", SUPERVISED)
def test_dead_latents_and_constant_factors_are_no_error(name: str) -> None:
    factors = grid_sample((3, 4, 6), 3_000)
    codes = standardised(factors)
    dead = np.concatenate([np.full((3_000, 1), 0.37), codes], axis=1)
    colour = np.concatenate([np.zeros((3_000, 1)), factors], axis=1)
    expected = SUPERVISED[name](codes, factors)[name]
    if name == "modularity_reference":
        expected *= 3 / 4  # the reference counts a dead latent as 0
    assert SUPERVISED[name](dead, colour)[name] == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("name", SUPERVISED)
def test_all_latents_dead_is_no_error(name: str) -> None:
    factors = grid_sample((3, 4, 6), 1_000)
    score = SUPERVISED[name](np.ones((1_000, 2)), factors)[name]
    assert 0 <= score <= (0.55 if name == "explicitness" else 0.45)


@pytest.mark.parametrize("name", [name for name in SUPERVISED if not name.startswith("beta_vae")])
def test_one_latent_and_one_factor(name: str) -> None:
    factors = grid_sample((5,), 2_000)
    assert SUPERVISED[name](standardised(factors), factors)[name] == pytest.approx(1, abs=0.02)


def test_nearly_dead_latents_do_not_vote_however_small_the_codes() -> None:
    factors = grid_sample((3, 4, 6), 2_000)
    noise = 0.01 * np.random.default_rng(0).normal(size=(2_000, 2))
    codes = np.concatenate([standardised(factors), noise], axis=1)
    for scale in (1, 1e-3):
        scores = F.factor_vae_score(scale * codes, factors, votes=1_000, test_votes=500)
        assert scores["factor_vae_reference_active"] == 3
    assert F.factor_vae_score(codes, factors, votes=99, test_votes=9, threshold=0)["factor_vae_reference_active"] == 5


def test_constant_latents_never_vote() -> None:
    """Without a threshold their variance over itself is 0/0, which made every vote theirs in the reference."""
    factors = grid_sample((3, 4, 6), 2_000)
    codes = np.concatenate([np.zeros((2_000, 1)), standardised(factors)], axis=1)
    scores = F.factor_vae_score(codes, factors, votes=1_000, test_votes=500, threshold=0)
    assert (scores["factor_vae_reference"], scores["factor_vae_reference_active"]) == (1, 3)


def brute_force_accuracy(z: Codes, y: NDArray[np.int64]) -> float:
    """Try every set of C - 1 thresholds and every class for each interval."""
    classes, values, best = int(y.max()) + 1, np.unique(z), 0.0
    for cuts in combinations(range(1, len(values)), classes - 1):
        interval = np.searchsorted(values[list(cuts)], z, side="right")
        for names in product(range(classes), repeat=classes):
            right = np.array(names)[interval] == y
            best = max(best, float(np.mean([right[y == c].mean() for c in range(classes)])))
    return best


@pytest.mark.parametrize("classes", [2, 3])
def test_thresholds_are_the_best_of_all(classes: int) -> None:
    rng = np.random.default_rng(classes)
    z, y = np.round(rng.normal(size=40), 1), np.r_[np.arange(classes), rng.integers(classes, size=40 - classes)]
    found = threshold_accuracy(z[:, None], y[:, None], np.arange(1), ())
    assert found.item() == pytest.approx(brute_force_accuracy(z, y), abs=1e-12)


def test_sap_of_one_good_and_one_middling_latent() -> None:
    """R² of a sum of two independent unit variances is 1/2 for each: the gap of factor 0 is 1/2."""
    factors = grid_sample((11, 11), 40_000)
    f = standardised(factors)
    codes = np.stack([f[:, 0], f[:, 0] + f[:, 1], np.random.default_rng(0).normal(size=40_000)], axis=1)
    assert F.sap(codes, factors)["sap_dip"] == pytest.approx(1 / 2, abs=0.01)
    # The rival's standard deviation is √2: inactive below 0.05, or below what is asked for.
    for scale, options, gap in [(0.036, {}, 1 / 2), (0.035, {}, 1), (0.035, {"threshold": 0.01}, 1 / 2)]:
        found = F.sap(codes * [1, scale, 1], factors[:, :1], **options)
        assert found["sap_dip"] == pytest.approx(gap, abs=0.01)


def test_dci_reference_variant_is_the_estimator_it_names() -> None:
    factors = grid_sample((3, 4), 600)
    codes = standardised(factors) @ [[1, 0.5], [0, 1]] + 0.3 * np.random.default_rng(0).normal(size=(600, 2))
    test = codes[400:], factors[400:]
    scores = F.dci(codes[:400], factors[:400], test=test, variant="reference", seed=3, jobs=2)
    models = [GradientBoostingClassifier(random_state=3).fit(codes[:400], factors[:400, k]) for k in range(2)]
    p = np.stack([m.feature_importances_ for m in models], axis=1)
    entropy = -(p / p.sum(axis=1, keepdims=True) * np.log2(p / p.sum(axis=1, keepdims=True))).sum(axis=1)
    assert scores["dci_reference_disentanglement"] == pytest.approx((1 - entropy) @ p.sum(axis=1) / 2, abs=1e-8)
    accuracy = np.mean([m.score(codes[400:], factors[400:, k]) for k, m in enumerate(models)])
    assert scores["dci_reference_informativeness"] == pytest.approx(accuracy, abs=1e-12)


def test_test_values_that_training_lacks_count_as_wrong() -> None:
    factors = grid_sample((3, 4), 600)
    codes, new = standardised(factors), factors.copy()
    new[:60, 0] = 9
    part = hold_out(codes, factors, (codes, new), 0.5, 0)
    assert (part.test_labels[:60, 0] == -1).all()
    assert F.dci(codes, factors, test=(codes, new))["dci_fast_informativeness"] == pytest.approx(1 - 0.1 / 2)


def test_rows_are_put_in_an_order_of_their_own() -> None:
    z = np.array([[1.0, -0.0], [0.5, 2.0], [1.0, 0.0], [-1.0, 3.0]])
    for order in permutations(range(4)):
        np.testing.assert_array_equal(in_own_order(z[list(order)])[0], in_own_order(z)[0])


def test_z_diff_may_leave_categories_out() -> None:
    factors = grid_sample((3, 4, 6, 1), 900)[:, [3, 0, 1, 2]]  # columns are counted with those that never vary
    noise = np.random.default_rng(0).normal(size=(900, 2))  # enough for the classifiers to differ
    codes = standardised(factors[:, 2:]) + noise  # which say nothing of the first one that varies
    score = partial(F.beta_vae_score, points=500, test_points=500)
    kept = score(codes, factors, variant="dip_continuous", categorical=[1])
    expected = score(codes, factors[:, 2:], variant="dip")
    assert list(kept.values()) == list(expected.values())
    assert kept["beta_vae_dip_continuous"] > score(codes, factors, variant="dip")["beta_vae_dip"] + 0.1
    with pytest.raises(ValueError, match="needs two"):
        score(codes, factors, variant="dip_continuous", categorical=[1, 2])


STOCHASTIC: dict[str, Callable[..., F.Scores]] = {
    "explicitness": F.explicitness,
    "sap_reference": F.sap_svm,
    "dci_fast": F.dci,
    "factor_vae_reference": partial(F.factor_vae_score, votes=500, test_votes=500),
    "factor_vae_parted": partial(F.parted_factor_score, batch=20),
    "beta_vae_dip": partial(F.beta_vae_score, points=500, test_points=500, variant="dip"),
    "beta_vae_standardised": partial(F.beta_vae_score, points=500, test_points=500),
}


@pytest.mark.parametrize("name", STOCHASTIC)
def test_a_seed_repeats_to_the_bit_in_any_order_of_rows(name: str) -> None:
    rng = np.random.default_rng(0)
    factors = grid_sample((3, 4, 6), 900)
    codes = standardised(factors) @ rng.normal(size=(3, 3)) + rng.normal(size=(900, 3))
    order = rng.permutation(900)
    first = STOCHASTIC[name](codes, factors, seed=1)
    assert first == STOCHASTIC[name](codes[order], factors[order], seed=1)
    assert first[f"{name}_seed"] == 1
    other = STOCHASTIC[name](codes, factors, seed=2)
    assert {k: v for k, v in other.items() if "seed" not in k} != {k: v for k, v in first.items() if "seed" not in k}
