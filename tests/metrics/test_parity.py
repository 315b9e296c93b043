"""The scores of the reference library, on its own inputs."""

import numpy as np
import pytest

from tests.helpers.oracle import GRID, NAMES, arrays, case, dci_arrays, expected
from vaezoo.metrics import functional as F
from vaezoo.metrics.functional.beta_vae import logistic
from vaezoo.metrics.functional.binning import equal_width
from vaezoo.metrics.functional.dci import completeness, disentanglement, fit_reference
from vaezoo.metrics.functional.irs import robustness
from vaezoo.metrics.functional.mutual_information import binned, information_table, modularity_by_code
from vaezoo.metrics.functional.pool import as_labels, hold_out, top_two_gap, varying
from vaezoo.metrics.functional.sap import explained_variance, svm_accuracy
from vaezoo.metrics.functional.udr import relative_strength
from vaezoo.metrics.functional.votes import distances, variances

EXACT = pytest.approx  # with abs=1e-9 below: deterministic, no solver inside


@pytest.mark.parametrize("name", NAMES)
def test_mutual_information_mig_and_modularity(name: str) -> None:
    c = case(name)
    table = information_table(binned(c.codes, 20), as_labels(c.factors.astype(np.float64)))
    np.testing.assert_allclose(table, arrays()[f"{name}/information"], rtol=0, atol=1e-9)
    assert F.mig(c.codes, c.factors) == {"mig_20": EXACT(c.expected["mig"], abs=1e-9)}
    assert F.modularity(c.codes, c.factors) == {"modularity_reference": EXACT(c.expected["modularity"], abs=1e-9)}


@pytest.mark.parametrize("name", NAMES)
def test_sap_by_linear_regression(name: str) -> None:
    c = case(name)
    table = explained_variance(c.codes, c.factors.astype(np.float64), np.arange(c.codes.shape[1]))
    np.testing.assert_allclose(table, arrays()[f"{name}/explained_variance"], rtol=0, atol=1e-9)
    assert F.sap(c.codes, c.factors) == {"sap_dip": EXACT(c.expected["sap_r2"], abs=1e-9)}


@pytest.mark.parametrize("name", NAMES)
def test_sap_by_support_vectors(name: str) -> None:
    """Within 1e-3: the reference's solver stops at a tolerance, ours at the optimum."""
    c = case(name)
    found = svm_accuracy(hold_out(c.codes, c.factors, c.test, 0.5, 0))
    np.testing.assert_allclose(found, arrays()[f"{name}/svm_accuracy"], rtol=0, atol=1e-3)
    score = F.sap_svm(c.codes, c.factors, test=c.test)["sap_reference"]
    assert score == pytest.approx(c.expected["sap_svm"], abs=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_explicitness(name: str) -> None:
    """Within 5e-4, as logistic regression stops at a tolerance; constant codes, a crash there, are left out."""
    c = case(name)
    scores = F.explicitness(c.codes, c.factors, test=c.test)
    assert scores["explicitness"] == pytest.approx(c.expected["explicitness"], abs=5e-4)
    assert scores["explicitness_train"] == pytest.approx(c.expected["explicitness_train"], abs=5e-4)


@pytest.mark.parametrize("percent", [99, 100])
@pytest.mark.parametrize("name", NAMES)
def test_irs(name: str, percent: int) -> None:
    c = case(name)
    alive = c.codes[:, varying(c.codes)]
    labels = equal_width(c.factors.astype(np.float64), 20)
    table = robustness(alive, labels, np.arange(alive.shape[1]), percent / 100)
    np.testing.assert_allclose(table, arrays()[f"{name}/robustness_{percent}"], rtol=0, atol=1e-9)
    score = F.irs(c.codes, c.factors, quantile=percent / 100)
    assert score == {f"irs_{percent}": EXACT(c.expected[f"irs_{percent}"], abs=1e-9)}


@pytest.mark.parametrize("name", NAMES)
def test_unsupervised_scores(name: str) -> None:
    c = case(name)
    bins = binned(c.codes, 20)
    np.testing.assert_allclose(information_table(bins, bins), arrays()[f"{name}/code_information"], rtol=0, atol=1e-9)
    between = F.code_mutual_information(c.codes)["code_mutual_information_20"]
    assert between == EXACT(c.expected["code_mutual_information"], abs=1e-9)
    total = F.gaussian_total_correlation(c.codes)["gaussian_total_correlation"]
    # The reference's rounding noise, where one code is a multiple of another, stands for infinity.
    assert total == EXACT(np.inf if name == "duplicate" else c.expected["total_correlation"], abs=1e-9)
    distance, share = F.gaussian_wasserstein_correlation(c.codes).values()
    assert (distance, share) == EXACT((c.expected["wasserstein"], c.expected["wasserstein_normalised"]), abs=1e-9)


@pytest.mark.parametrize("name", sorted(expected()["tables"]))
def test_scores_of_a_given_table(name: str) -> None:
    table, score = arrays()[f"tables/{name}"], expected()["tables"][name]
    found = {
        "dci_disentanglement": disentanglement(table),
        "dci_completeness": completeness(table),
        "modularity": modularity_by_code(table).mean(),
        "sap_avg_diff_top_two": top_two_gap(table).mean(),
        "udr_relative_strength": relative_strength(table),
    }
    assert found == EXACT(score, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "variant", "threshold"),
    [
        ("lasso_filter_low_kl_True", "lasso", 0.01),
        ("lasso_filter_low_kl_False", "lasso", None),
        ("lasso_kl_threshold_0.001", "lasso", 0.001),
        ("spearman_filter_low_kl_True", "spearman", 0.01),
    ],
)
def test_udr(name: str, variant: str, threshold: float | None) -> None:
    codes, kl = list(arrays()["udr/codes"]), list(arrays()["udr/kl"])
    scores = F.udr(codes, kl, variant=variant, kl_threshold=threshold)  # type: ignore[arg-type]
    runs = expected()["udr"][name]
    assert [scores[f"udr_{variant}_run_{i}"] for i in range(5)] == EXACT(runs, abs=1e-9)
    assert scores[f"udr_{variant}"] == EXACT(np.mean(runs), abs=1e-9)


@pytest.mark.parametrize("name", ["rotation", "dead"])
def test_votes_on_given_batches(name: str) -> None:
    c, scale = case(name), arrays()[f"{name}/vote_scale"]
    rows = arrays()[f"{name}/vote_rows"].astype(np.intp)
    ratio = variances(c.table, rows, np.arange(c.table.shape[1]))[:, scale > 0] / scale[scale > 0]
    np.testing.assert_array_equal(ratio.argmin(axis=1), arrays()[f"{name}/vote_winner"])


def test_distances_and_classifier_on_given_pairs() -> None:
    c = case("rotation")
    given = {key.removeprefix("rotation/pair_"): value for key, value in arrays().items() if "/pair_" in key}
    left, right = given["left"].astype(np.intp), given["right"].astype(np.intp)
    np.testing.assert_allclose(distances(c.table, left, right, np.arange(5)), given["distance"], rtol=0, atol=1e-12)
    guess = logistic(given["train_points"], given["train_labels"].astype(np.int64), given["eval_points"], 0)
    assert (guess == given["eval_labels"]).mean() == pytest.approx(c.expected["beta_vae_fixed_points"], abs=1e-3)


def within_three_errors(values: list[float], mean: float, deviation: float, seeds: int = 10) -> bool:
    """Compare our mean with the reference's over `seeds`, both with the reference's deviation or one miss in 10,000."""
    error = max(deviation, 1e-4) * np.sqrt(1 / seeds + 1 / len(values))
    return bool(abs(np.mean(values) - mean) <= 3 * error)


@pytest.mark.parametrize("name", NAMES)
def test_factor_vae_score(name: str) -> None:
    c = case(name)
    runs = [F.factor_vae_score(c.table, GRID, seed=seed) for seed in range(5)]
    for key, part in (("eval_accuracy", ""), ("train_accuracy", "_train")):
        assert within_three_errors([r[f"factor_vae_reference{part}"] for r in runs], *c.expected["factor_vae"][key])
    assert {r["factor_vae_reference_active"] for r in runs} == {varying(c.table).sum()}


@pytest.mark.parametrize(("name", "variant"), [*((name, "reference") for name in NAMES), ("rotation", "standardised")])
def test_beta_vae_score(name: str, variant: str) -> None:
    c = case(name)
    runs = [F.beta_vae_score(c.table, GRID, variant=variant, seed=seed) for seed in range(5)]  # type: ignore[arg-type]
    for key, part in (("eval_accuracy", ""), ("train_accuracy", "_train")):
        assert within_three_errors([r[f"beta_vae_{variant}{part}"] for r in runs], *c.expected["beta_vae"][key])


@pytest.mark.parametrize("name", ["rotation", pytest.param("noise", marks=pytest.mark.slow)])
def test_importances_of_the_reference_dci(name: str) -> None:
    """The factor of three classes alone: all five take a minute. Five seeds of the reference differ by up to 1e-4."""
    c = case(name)
    part = hold_out(c.codes, c.factors, c.test, 0.5, 0)
    (fit,) = fit_reference(
        part._replace(labels=part.labels[:, :1], test_labels=part.test_labels[:, :1]), seed=0, jobs=1
    )
    expected = dci_arrays()[f"{name}/importance"][:, :, 0].mean(axis=0)
    np.testing.assert_allclose(fit.importance, expected, rtol=0, atol=3e-4)


@pytest.mark.parametrize("name", NAMES[1:5])
def test_dci_of_the_importances_of_five_seeds(name: str) -> None:
    tables = dci_arrays()[f"{name}/importance"]
    for score, key in ((disentanglement, "disentanglement"), (completeness, "completeness")):
        assert [score(table) for table in tables] == EXACT(dci_arrays()[f"{name}/{key}"].tolist(), abs=1e-9)


@pytest.mark.slow
def test_reference_dci() -> None:
    """Where trees stop early, in seconds; "rotation" and "noise" agree as well, in a minute each."""
    c = case("shared")
    scores = F.dci(c.codes, c.factors, test=c.test, variant="reference")
    names = {"disentanglement": "disentanglement", "completeness": "completeness"}
    names |= {"informativeness": "informativeness_test", "informativeness_train": "informativeness_train"}
    for ours, theirs in names.items():
        assert within_three_errors([scores[f"dci_reference_{ours}"]], *c.expected["dci"][theirs], seeds=5)


@pytest.mark.parametrize("name", NAMES[1:5])
def test_fast_dci_stays_within_five_hundredths_of_the_reference(name: str) -> None:
    c = case(name)
    scores = F.dci(c.codes, c.factors, test=c.test)
    names = {"disentanglement": "disentanglement", "completeness": "completeness"}
    names |= {"informativeness": "informativeness_test", "informativeness_train": "informativeness_train"}
    for ours, theirs in names.items():
        assert scores[f"dci_fast_{ours}"] == pytest.approx(c.expected["dci"][theirs][0], abs=0.05)
