"""Values that follow from the definitions, without any implementation."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from tests.helpers.oracle import grid_sample, standardised
from tests.helpers.supervised import SUPERVISED
from vaezoo.metrics import functional as F

DSPRITES, SHAPES3D, ISAAC3D = (3, 6, 40, 32, 32), (10, 10, 10, 8, 4, 15), (3, 8, 5, 4, 4, 4, 6, 4, 4)
SMALL = (3, 4, 6)
Codes = NDArray[np.float64]


@pytest.mark.parametrize("name", SUPERVISED)
def test_perfect_codes_score_one_permuted_negated_or_rescaled(name: str) -> None:
    factors = grid_sample(SMALL, 2_000)
    perfect = standardised(factors)
    score = SUPERVISED[name]
    best = score(perfect, factors)[name]
    assert best == pytest.approx(1, abs=0.02)
    changed = {"permuted": perfect[:, [2, 0, 1]], "negated": -perfect}
    # The penalty of the one has a scale, as in the paper; the other leaves out latents of small range.
    if name not in ("beta_vae_dip", "infomec_modularity", "infomec_compactness"):
        changed["stretched"] = perfect * [100.0, 0.2, 3.0]
    if name not in ("beta_vae_dip", "sap_dip", "factor_vae_parted"):  # nor do these two know an inactive latent's scale
        changed["shrunk"] = 0.01 * perfect
    slack = 0.01 if name.startswith("infomec") else 2e-3  # noise separates equal codes
    for change, codes in changed.items():
        assert score(codes, factors)[name] == pytest.approx(best, abs=slack), change


@pytest.mark.parametrize(
    ("name", "chance"),
    [
        ("mig_20", 0),
        ("mig_adaptive", 0),
        ("sap_dip", 0),
        ("dci_fast_disentanglement", 0),
        ("irs_99", 0),
        ("explicitness", 1 / 2),
        ("factor_vae_reference", 1 / 3),
        ("beta_vae_standardised", 1 / 3),
        ("beta_vae_dip", 1 / 3),
    ],
)
def test_random_codes_score_no_better_than_chance(name: str, chance: float) -> None:
    factors = grid_sample(SMALL, 2_000)
    codes = np.random.default_rng(1).normal(size=(2_000, 5))
    # Majority votes among five latents, and the 0.99 quantile below the maximum, are somewhat above it.
    slack = {"irs_99": 0.35, "factor_vae_reference": 0.1, "dci_fast_disentanglement": 0.15}.get(name, 0.05)
    assert SUPERVISED[name](codes, factors)[name] == pytest.approx(chance, abs=slack)


@pytest.mark.parametrize(("sizes", "score"), [(DSPRITES, 0.896), (SHAPES3D, 0.998), (ISAAC3D, 0.999)])
def test_mig_of_perfect_codes_on_the_grids_of_the_field(sizes: tuple[int, ...], score: float) -> None:
    factors = grid_sample(sizes)
    assert F.mig(standardised(factors), factors)["mig_20"] == pytest.approx(score, abs=1e-3)


def test_adaptive_bins_do_not_punish_factors_of_many_values() -> None:
    factors = grid_sample((3, 40), 40_000)
    codes = standardised(factors)
    assert F.mig(codes, factors)["mig_20"] < 0.92
    assert F.mig(codes, factors, variant="adaptive")["mig_adaptive"] > 0.995


def test_sap_of_perfect_codes_needs_linear_regression() -> None:
    factors = grid_sample(DSPRITES)
    codes = standardised(factors)
    assert F.sap(codes, factors)["sap_dip"] == pytest.approx(1, abs=1e-3)
    assert F.sap_svm(codes, factors)["sap_reference"] == pytest.approx(0.24, abs=0.01)


def test_total_correlation_and_distance_of_a_known_gaussian() -> None:
    """Correlation r: TC is -log(1 - r²)/2; eigenvalues 1 ± r give the distance 4 - 2(√(1 + r) + √(1 - r))."""
    r, rows = 0.6, 200_000
    noise = np.random.default_rng(0).normal(size=(rows, 2))
    codes = np.stack([noise[:, 0], r * noise[:, 0] + np.sqrt(1 - r**2) * noise[:, 1]], axis=1)
    total = F.gaussian_total_correlation(codes)["gaussian_total_correlation"]
    assert total == pytest.approx(-np.log(1 - r**2) / 2, abs=5e-3)
    assert F.gaussian_total_correlation(codes * [3, -7]) == {
        "gaussian_total_correlation": pytest.approx(total, abs=1e-9)
    }
    distance = F.gaussian_wasserstein_correlation(codes)["gaussian_wasserstein_correlation"]
    assert distance == pytest.approx(4 - 2 * (np.sqrt(1 + r) + np.sqrt(1 - r)), abs=5e-3)


def test_udr_of_runs_that_agree() -> None:
    """Copies up to order and sign: a lasso coefficient of 1 - alpha each, and rank correlation 1 with little else."""
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(5_000, 4))
    runs, kl = [codes, -codes[:, ::-1], codes[:, [1, 0, 3, 2]]], [np.ones(4)] * 3
    assert F.udr(runs, kl)["udr_lasso"] == pytest.approx(0.9, abs=1e-6)
    assert F.udr(runs, kl, variant="spearman")["udr_spearman"] == pytest.approx(1, abs=0.06)
    assert F.udr([rng.normal(size=(5_000, 4)) for _ in range(3)], kl)["udr_lasso"] == 0


POSITIONS = np.stack(np.meshgrid(np.arange(64.0), np.arange(64.0), indexing="ij"), axis=-1).reshape(-1, 2)
POLAR = np.stack([np.arctan2(POSITIONS[:, 1], POSITIONS[:, 0]), np.hypot(*POSITIONS.T)], axis=1)


def test_polar_and_cartesian_errors_of_ideal_codes() -> None:
    """Ideal codes miss only by the paper's ranges: 90.5 for 63√2, and 64 for 63."""
    ideal = (90.5 / np.hypot(63, 63) - 1) ** 2 * (POLAR[:, 1] ** 2).mean()
    with_noise = np.concatenate([POLAR, np.random.default_rng(0).normal(size=(4096, 2)), np.zeros((4096, 1))], axis=1)
    for codes in (POLAR, -POLAR, POLAR[:, ::-1] * [3, -1] + 2, with_noise):
        assert F.polar_error(codes, POSITIONS)["polar_error"] == pytest.approx(ideal, abs=1e-6)
    assert ideal == pytest.approx(0.66, abs=5e-3)
    assert F.polar_error(POSITIONS, POSITIONS)["polar_error"] == pytest.approx(669, abs=1)
    for codes in (POSITIONS, -POSITIONS[:, ::-1]):
        assert F.cartesian_error(codes, POSITIONS)["cartesian_error"] == pytest.approx(0.67, abs=5e-3)


def test_polar_error_of_a_true_code_that_is_spread_as_the_prior_is() -> None:
    """Angle and distance as normal quantiles of their mean ranks: only the spread is off."""
    quantiles = norm.ppf((rankdata(POLAR, axis=0) - 0.5) / len(POLAR))
    assert F.polar_error(quantiles, POSITIONS)["polar_error"] == pytest.approx(74.56, abs=0.01)


def test_polar_error_of_random_codes() -> None:
    draws = np.random.default_rng(0).normal(size=(20, 4096, 2))
    assert np.mean([F.polar_error(codes, POSITIONS)["polar_error"] for codes in draws]) == pytest.approx(922, rel=0.03)


def test_polar_error_is_the_least_over_all_pairs_and_inversions() -> None:
    codes = np.random.default_rng(3).normal(size=(4096, 3))
    unit = (codes - codes.min(axis=0)) / np.ptp(codes, axis=0)
    errors = []
    for i, j in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]:
        for angle in (unit[:, i], 1 - unit[:, i]):
            for distance in (unit[:, j], 1 - unit[:, j]):
                phi, d = angle * np.pi / 2, distance * 90.5
                miss = np.stack([d * np.cos(phi), d * np.sin(phi)], axis=1) - POSITIONS
                errors.append((miss**2).sum(axis=1).mean())
    assert F.polar_error(codes, POSITIONS)["polar_error"] == pytest.approx(min(errors), rel=1e-9)
