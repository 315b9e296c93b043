"""Accuracies, distances, activity and intervals, worked out by hand or by force."""

import math
from functools import partial
from itertools import permutations

import numpy as np
import pytest

from tests.helpers.oracle import grid_sample, standardised
from vaezoo.metrics import evaluate, functional as F


def test_cluster_accuracy_is_the_best_over_all_permutations() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=200)
    probabilities = rng.dirichlet(np.ones(4), size=200) + 0.5 * np.eye(4)[(labels + 1) % 4]
    chosen = probabilities.argmax(axis=1)
    best = max((np.array(order)[chosen] == labels).mean() for order in permutations(range(4)))
    assert F.cluster_accuracy(probabilities, labels) == {"cluster_accuracy": pytest.approx(best)}
    assert F.cluster_accuracy(chosen, labels[:, None]) == {"cluster_accuracy": pytest.approx(best)}
    assert F.class_accuracy(probabilities, labels) == {"class_accuracy": pytest.approx((chosen == labels).mean())}


def test_a_cluster_is_matched_with_one_label_only() -> None:
    """Three clusters for two labels: the smaller half of label 0 stays unmatched."""
    assert F.cluster_accuracy([0, 0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 0, 1, 1]) == {
        "cluster_accuracy": pytest.approx(5 / 7)
    }


def test_label_distance_by_hand() -> None:
    assert F.label_distance([[0, 0], [3, 4]], [[0, 1], [0, 0]]) == {
        "label_distance": pytest.approx((1 + 5) / 2),
        "label_distance_0": pytest.approx(math.sqrt(9 / 2)),
        "label_distance_1": pytest.approx(math.sqrt((1 + 16) / 2)),
    }


def test_attribute_bias_minimises_the_hinge_loss() -> None:
    rng = np.random.default_rng(0)
    attributes = rng.random((400, 2)) < [0.3, 0.6]
    codes = rng.normal(size=(400, 3)) + attributes @ rng.normal(size=(2, 3))
    train, test = (codes[:300], attributes[:300]), (codes[300:], attributes[300:])
    accuracy = []
    for k in range(2):
        y = np.where(train[1][:, k], 1, -1)
        direction = train[0][y > 0].mean(axis=0) - train[0][y < 0].mean(axis=0)
        biases = np.linspace(-6, 6, 24_001)
        losses = np.maximum(0, 1 - y * (train[0] @ direction + biases[:, None])).sum(axis=1)
        lowest = biases[losses <= losses.min() + 1e-9]
        right = (test[0] @ direction + lowest.mean() > 0) == test[1][:, k]
        accuracy.append(right.mean())
    scores = F.attribute_accuracy(*train, test=test)
    assert [scores["attribute_accuracy_0"], scores["attribute_accuracy_1"]] == pytest.approx(accuracy, abs=1e-12)
    assert scores["attribute_accuracy"] == pytest.approx(np.mean(accuracy))


def test_attribute_bias_lies_in_the_middle_of_its_choices() -> None:
    """Projections ±8 leave the hinge loss at 0 for every bias in [-7, 7]."""
    scores = F.attribute_accuracy([[-2], [-2], [2], [2]], [[0], [0], [1], [1]], test=([[-1], [1]], [[0], [1]]))
    assert scores["attribute_accuracy"] == 1


def test_attributes_carry_their_names_without_those_that_training_never_sees() -> None:
    codes, attributes = [[-2.0], [-1], [1], [2]], [[0, 0, 1], [0, 0, 0], [1, 0, 1], [1, 0, 0]]
    found = F.attribute_accuracy(codes, attributes, test=(codes, attributes), attribute_names=("Male", "Hat", "Bangs"))
    assert found["attribute_accuracy_Male"] == 1
    assert set(found) == {f"attribute_accuracy{x}" for x in ("", "_Male", "_Bangs")}


def test_label_accuracy_counts_observed_labels_alone() -> None:
    """Label 0 is right twice in three, label 1 once in two; their mean weighs labels equally."""
    decoded, labels = [[0, 1], [1, 1], [2, 0], [0, 0]], [[0, np.nan], [1, 1], [0, 1], [np.nan, np.nan]]
    assert F.label_accuracy(decoded, labels, label_names=("angle", "distance")) == {
        "label_accuracy": pytest.approx(7 / 12),
        "label_accuracy_angle": pytest.approx(2 / 3),
        "label_accuracy_distance": pytest.approx(1 / 2),
    }
    assert set(F.label_accuracy([[1]], [[1]])) == {"label_accuracy", "label_accuracy_0"}


def test_labels_in_order_along_the_latent_that_tells_them_apart() -> None:
    """Latent 0 falls with the first label and says nothing of the second, whose last two classes latent 1 swaps."""
    angle, ring = np.divmod(np.arange(9), 3)
    codes = np.stack([-angle + [0.1, -0.1, 0] * 3, np.array([0.0, 2, 1])[ring], np.ones(9)], axis=1)
    labels = np.stack([angle, ring], axis=1).astype(float)
    assert F.label_order(codes, labels, label_names=("angle", "ring")) == {
        "label_order": 0.5,
        "label_order_angle": 1,
        "label_order_ring": 0,
    }
    codes[:, 1] = ring**2
    assert F.label_order(codes, labels)["label_order"] == 1


def test_label_order_reads_the_latent_by_its_correlation_ratio() -> None:
    """A long latent that is mostly noise does not hide a short one; unobserved labels do not count."""
    codes = [[0, 90], [0, -90], [1, 80], [1, -81], [3, 70], [3, -75], [9, 0]]
    labels = [[0], [0], [2], [2], [1], [1], [np.nan]]
    assert F.label_order(codes, labels) == {"label_order": 0, "label_order_0": 0}
    assert F.label_order(codes, [[0], [0], [1], [1], [2], [2], [np.nan]]) == {"label_order": 1, "label_order_0": 1}


def test_active_units_and_kl_per_unit() -> None:
    codes = np.random.default_rng(0).normal(size=(5_000, 3)) * [1, 0.05, 0.2]
    assert F.active_units(codes) == {"active_units": 2}
    assert F.kl_per_unit([[1, 0.001], [3, 0.003]]) == {
        "kl": pytest.approx(2.002),
        "kl_active_units": 1,
        "kl_unit_0": pytest.approx(2),
        "kl_unit_1": pytest.approx(0.002),
    }


def test_bootstrap_of_a_mean_is_the_normal_interval() -> None:
    rng = np.random.default_rng(0)
    guess, truth = rng.normal(size=(2_000, 2)), np.zeros((2_000, 2))
    size = np.hypot(*guess.T)
    low, high = F.bootstrap(F.label_distance, guess, truth, resamples=2_000)["label_distance"]
    error = size.std() / np.sqrt(2_000)
    assert (low, high) == pytest.approx((size.mean() - 1.96 * error, size.mean() + 1.96 * error), abs=0.15 * error)
    narrow = F.bootstrap(F.label_distance, guess, truth, resamples=2_000, level=0.5)["label_distance"]
    assert narrow.high - narrow.low == pytest.approx(2 * 0.674 * error, rel=0.1)


def test_bootstrap_of_a_perfect_score_contains_it() -> None:
    factors = grid_sample((3, 4, 8), 2_000)
    codes = standardised(factors)
    low, high = F.bootstrap(F.mig, codes, factors, resamples=50)["mig_20"]
    assert low < F.mig(codes, factors)["mig_20"] < high
    assert high - low < 0.01
    twice = np.concatenate([codes, codes[:, :1]], axis=1)
    assert F.bootstrap(F.gaussian_total_correlation, twice, resamples=5) == {
        "gaussian_total_correlation": (np.inf,) * 2
    }


def test_an_interval_never_excludes_its_score() -> None:
    rows = np.arange(200.0)[:, None]
    rare = F.bootstrap(lambda x: {"s": 1e6 * ((x == 0).sum() >= 4)}, rows, resamples=200, seed=1)["s"]
    assert rare == (0, 0)  # a mean of draws lies far outside their percentiles
    even = F.bootstrap(lambda x: {"s": 0.1 + 0.2}, rows, resamples=99)["s"]
    assert even == (0.1 + 0.2, 0.1 + 0.2)  # to the last bit
    holes = F.bootstrap(lambda x: {"s": 7.0 if len(np.unique(x)) == 200 else np.inf}, rows, resamples=50)["s"]
    assert holes == (7, np.inf)
    gaps = F.bootstrap(lambda x: {"s": 3.0 if len(np.unique(x)) > 127 else np.nan}, rows, resamples=50)["s"]
    assert gaps == (3, 3)  # draws without a value do not count


def test_intervals_of_every_score_hold_it() -> None:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(size, size=60) for size in (2, 3)], axis=1)
    codes = np.concatenate([factors + rng.normal(size=(60, 2)), rng.dirichlet([0.1] * 3, 60)], axis=1)
    found = evaluate(codes, factors, factor_kinds=["categorical", "ordered"], discrete=[3], resamples=6)
    assert len(found.results) > 8
    for result in found.results.values():
        assert result.intervals
        for name, (low, high) in result.intervals.items():
            assert low <= result.scores[name] <= high, name


def test_bootstrap_repeats_with_its_seed_and_keeps_a_fixed_test_pool() -> None:
    factors = grid_sample((3, 4), 600)
    codes = standardised(factors) + np.random.default_rng(0).normal(size=(600, 2))
    metric = partial(F.explicitness, test=(codes[400:], factors[400:]))
    found = F.bootstrap(metric, codes[:400], factors[:400], resamples=20, seed=1)
    assert found == F.bootstrap(metric, codes[:400], factors[:400], resamples=20, seed=1)
    assert found != F.bootstrap(metric, codes[:400], factors[:400], resamples=20, seed=2)
    assert set(found) == {"explicitness", "explicitness_train"}
    assert found["explicitness"].low < metric(codes[:400], factors[:400])["explicitness"] < found["explicitness"].high
