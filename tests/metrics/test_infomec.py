"""InfoMEC: its formulas by hand, its parts against closed forms, and the whole against a plain loop."""

import warnings
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, mutual_info_score

from tests.helpers.oracle import grid_sample, standardised
from vaezoo.metrics import functional as F
from vaezoo.metrics.functional.infomec import dominance, explained, normalised_information

Codes = NDArray[np.float64]
Factors = NDArray[np.int64]


def modularity_and_compactness(codes: Codes, factors: Factors, **options: tuple[int, ...]) -> tuple[float, float]:
    scores = F.infomec(codes, factors, **options)  # type: ignore[arg-type]
    return scores["infomec_modularity"], scores["infomec_compactness"]


def entropy_of_a_coin(p: float) -> float:
    """In bits, so the share of a fair coin's entropy."""
    return float(-p * np.log2(p) - (1 - p) * np.log2(1 - p))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ([[0.8, 0.0, 0.0], [0.0, 0.3, 0.0]], 1),
        ([[0.2, 0.2, 0.2]], 0),
        ([[0.4, 0.4, 0.0]], (1 / 2 - 1 / 3) / (2 / 3)),  # 1/4
        ([[0.6, 0.2]], (3 / 4 - 1 / 2) / (1 / 2)),  # 1/2
        ([[0.6, 0.2], [0.1, 0.1]], 1 / 4),  # rows count alike, however much they hold
        ([[0.9, 0.0], [0.0, 0.0]], 1 / 2),  # a row of nothing counts as equal shares
        ([[0.9], [0.1]], 1),
        ([[0.9], [0.0]], 1),
        ([[0.0], [0.0]], 0),
    ],
)
def test_a_row_scores_its_largest_share_beyond_equal_shares(table: list[list[float]], expected: float) -> None:
    assert dominance(np.array(table)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("shift", "share"), [(0.0, 0), (0.25, 0.25), (0.5, 0.5), (1.0, 1)])
def test_information_of_two_overlapping_uniform_classes(shift: float, share: float) -> None:
    """Outside the overlap a code tells the class, within it nothing: the information is `shift` bits of one."""
    label = np.tile([0, 1], 5_000)
    z = np.random.default_rng(0).random(10_000) + shift * label
    no_classes = np.empty((10_000, 0), dtype=np.int64)
    table = normalised_information(standardised(z[:, None]), no_classes, label[:, None], 0)
    assert table == pytest.approx(np.array([[share]]), abs=0.02)


def test_information_is_over_the_entropy_of_its_factor() -> None:
    """Three classes of shares 1/2, 1/4, 1/4; the code tells the first from the others: 1 bit of 3/2."""
    label = np.tile([0, 0, 1, 2], 2_500)
    z = np.random.default_rng(0).random(10_000) + 1.5 * (label > 0)
    no_classes = np.empty((10_000, 0), dtype=np.int64)
    table = normalised_information(standardised(z[:, None]), no_classes, label[:, None], 0)
    assert table == pytest.approx(np.array([[2 / 3]]), abs=0.02)


def test_one_latent_a_factor_scores_one_and_copies_are_not_compact() -> None:
    factors = grid_sample((5, 4), 5_000)
    perfect = standardised(factors)
    assert modularity_and_compactness(perfect, factors) == pytest.approx((1, 1), abs=0.01)
    copied = perfect[:, [0, 0, 1]] * [1, -2, 1]
    # Factor 0 has half its information in each copy, factor 1 all of it in one of three latents.
    expected = ((1 / 2 + 1) / 2 - 1 / 3) / (1 - 1 / 3)
    assert modularity_and_compactness(copied, factors) == pytest.approx((1, expected), abs=0.01)


def test_a_latent_that_tells_two_of_three_factors_is_a_quarter_modular() -> None:
    """4a + b for a, b of four values: all information of both, so half of the latent's for each."""
    factors = grid_sample((4, 4, 3), 10_000)
    codes = np.stack([4 * factors[:, 0] + factors[:, 1], 4 * factors[:, 2]], axis=1).astype(float)
    mixed = (1 / 2 - 1 / 3) / (1 - 1 / 3)
    assert modularity_and_compactness(codes, factors) == pytest.approx(((mixed + 1) / 2, 1), abs=0.01)


def test_a_turn_by_half_a_right_angle_leaves_nothing_but_explicitness() -> None:
    factors = grid_sample((5, 5), 10_000)
    straight = standardised(factors)
    turned = straight @ [[1, 1], [1, -1]] / np.sqrt(2)
    assert modularity_and_compactness(turned, factors) == pytest.approx((0, 0), abs=0.03)
    noise = 0.3 * np.random.default_rng(0).normal(size=(10_000, 2))
    before, after = straight + noise, (straight + noise) @ [[1, 1], [1, -1]] / np.sqrt(2)
    expected = F.infomec(before, factors)["infomec_explicitness"]
    assert 0.4 < expected < 0.9
    assert F.infomec(after, factors)["infomec_explicitness"] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("rare", [0.5, 0.2])
def test_explicitness_of_two_gaussian_classes(rare: float) -> None:
    """Classes at ±1 of equal weight have the posterior 1 / (1 + exp(-2z)); its log loss counts rows as they occur.

    Weighting the loss too, not weighting the fit, or a null model that knows the shares would differ where one is rare.
    """
    rows = 40_000
    label = (np.arange(rows) < rare * rows).astype(np.int64)
    places = norm.ppf((np.arange(rows) + 0.5) / rows)  # quantiles in place of draws
    rng = np.random.default_rng(0)
    z = np.where(label == 1, 1.0, -1.0)
    for c in range(2):
        z[label == c] += rng.permutation(norm.ppf((np.arange((label == c).sum()) + 0.5) / (label == c).sum()))
    loss = np.log1p(np.exp(-2 * (places + 1))).mean()  # the same for both classes by symmetry
    score = F.infomec(np.stack([z, rng.normal(size=rows)], axis=1), label[:, None])["infomec_explicitness"]
    assert score == pytest.approx(1 - loss / np.log(2), abs=2e-3)


def test_explicitness_without_symmetry_counts_every_row_of_the_frequent_class() -> None:
    """A bit that class 1 always shows and class 0 half the time, class 0 three times as frequent.

    With equal weights P(1 | shown) = 2/3 and P(1 | not shown) = 0. Of all rows 5/8 show it: 3/8 cost -log(1/3),
    2/8 cost -log(2/3), and 3/8 nothing.
    """
    label = np.repeat([0, 0, 0, 1], 1_000)
    shown = np.where(label == 1, 1.0, np.arange(4_000) % 2)
    loss = (3 * np.log(3) + 2 * np.log(3 / 2)) / 8
    assert explained(standardised(shown[:, None]), label[:, None]) == pytest.approx(1 - loss / np.log(2), abs=5e-3)


@pytest.mark.parametrize("sizes", [(2, 2), (3, 10), (40, 3)])
def test_codes_that_a_line_separates_are_fully_explicit_without_a_warning(sizes: tuple[int, ...]) -> None:
    factors = grid_sample(sizes, 3_000)
    with warnings.catch_warnings(), np.errstate(over="raise", invalid="raise", divide="raise"):
        warnings.simplefilter("error")
        found = F.infomec(standardised(factors), factors)
    assert found["infomec_explicitness"] == pytest.approx(1, abs=2e-3)


def by_a_plain_loop(codes: Codes, factors: Factors, seed: int) -> dict[str, float]:
    """The definition, one latent and one factor at a time."""
    scaled, (rows, latents), sources = standardised(codes), codes.shape, factors.shape[1]
    table = np.empty((sources, latents))
    readable = []
    for i, y in enumerate(factors.T):
        for j in range(latents):
            information = mutual_info_classif(
                scaled[:, [j]], y, discrete_features=False, n_neighbors=10, random_state=seed
            )
            table[i, j] = information[0] / mutual_info_score(y, y)
        losses = []
        for x in (scaled, np.zeros((rows, 1))):
            model = LogisticRegression(C=np.inf, class_weight="balanced", tol=1e-4, max_iter=100).fit(x, y)
            losses.append(log_loss(y, model.predict_proba(x)))
        readable.append(1 - losses[0] / losses[1])
    spread = codes.max(axis=0) - codes.min(axis=0)
    table = table[:, spread > spread.max() / 20]
    active = table.shape[1]
    modular = (table.max(axis=0) / table.sum(axis=0)).mean()
    compact = (table.max(axis=1) / table.sum(axis=1)).mean()
    return {
        "infomec_modularity": (modular - 1 / sources) / (1 - 1 / sources),
        "infomec_explicitness": float(np.mean(readable)),
        "infomec_compactness": (compact - 1 / active) / (1 - 1 / active),
        "infomec_seed": seed,
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_definition_is_that_of_a_plain_loop(seed: int) -> None:
    """Exact but for logistic regression, which stops at a tolerance. The last latent is inactive."""
    rng = np.random.default_rng(seed)
    unbalanced = rng.choice(3, size=(1_000, 1), p=[0.6, 0.3, 0.1])
    factors = np.concatenate([unbalanced, rng.integers((2, 6), size=(1_000, 2))], axis=1)
    codes = factors @ rng.normal(size=(3, 5)) + rng.normal(size=(1_000, 5))
    codes *= [1, 5, 0.5, 2, 0.02]
    expected, found = by_a_plain_loop(codes, factors, seed), F.infomec(codes, factors, seed=seed)
    assert found["infomec_modularity"] == pytest.approx(expected["infomec_modularity"], abs=1e-9)
    assert found["infomec_compactness"] == pytest.approx(expected["infomec_compactness"], abs=1e-9)
    assert found["infomec_explicitness"] == pytest.approx(expected["infomec_explicitness"], abs=1e-3)
    assert 0.1 < found["infomec_explicitness"] < 0.9


def test_latents_of_at_most_a_twentieth_of_the_largest_range_are_left_out_of_all_but_explicitness() -> None:
    factors = grid_sample((5, 4), 5_000)
    codes = np.stack([5.0 * factors[:, 0], 5.0 * factors[:, 1], 0.25 * factors[:, 0]], axis=1)  # ranges 20, 15 and 1
    with_copy = ((1 / 2 + 1) / 2 - 1 / 3) / (1 - 1 / 3)
    assert modularity_and_compactness(codes, factors) == pytest.approx((1, 1), abs=0.01)
    assert modularity_and_compactness(codes * [1, 1, 1.01], factors) == pytest.approx((1, with_copy), abs=0.01)
    assert modularity_and_compactness(codes + np.array([0, 0, 100]), factors) == pytest.approx((1, 1), abs=0.01)
    weak = F.infomec(codes[:, 1:] * [1, 0.1], factors)
    assert weak["infomec_explicitness"] == pytest.approx(1, abs=2e-3)  # factor 0 is read from an inactive latent
    assert weak["infomec_compactness"] == 1  # and no factor is spread over the one active latent


def test_dead_latents_change_nothing() -> None:
    factors = grid_sample((3, 4), 2_000)
    noisy = standardised(factors) + np.random.default_rng(0).normal(size=(2_000, 2))
    dead = np.concatenate([noisy, np.full((2_000, 1), 0.1), np.full((2_000, 1), 1e-200)], axis=1)
    dead[0, 3] = 0  # varies, though its variance is 0 in floating point
    assert F.infomec(dead, factors) == pytest.approx(F.infomec(noisy, factors), abs=1e-12)


@pytest.mark.parametrize("width", [1, 3])
def test_nothing_but_dead_latents_scores_zero(width: int) -> None:
    scores = F.infomec(np.ones((500, width)), grid_sample((3, 2), 500))
    assert list(scores.values()) == [0, 0, 0, 0]
    assert F.infomec(np.tile([0.6, 0.4], (500, 1)), grid_sample((3, 2), 500), discrete=(2,)) == scores


def test_a_single_factor_or_a_single_active_latent_leaves_nothing_to_mix() -> None:
    factors = grid_sample((4, 3), 2_000)
    codes = standardised(factors)
    assert modularity_and_compactness(codes, factors[:, :1]) == (1, pytest.approx(1, abs=0.02))
    assert modularity_and_compactness(codes[:, :1], factors[:, :1]) == (1, 1)
    mixed = 4.0 * factors[:, [1]] + factors[:, [0]]
    assert modularity_and_compactness(mixed, factors) == (pytest.approx(0, abs=0.01), 1)


def flipped_in_a_quarter() -> tuple[Codes, Factors]:
    """Two fair factors, and soft probabilities whose likelier class is the first factor in exactly 3/4 of the rows."""
    rows = np.arange(1_600)
    factors = np.stack([rows % 2, rows // 2 % 2], axis=1)
    shown = factors[:, 0] ^ (rows // 4 % 4 == 0)
    sure = np.random.default_rng(0).uniform(0.51, 1, size=1_600)
    one = np.where(shown == 1, sure, 1 - sure)
    return np.stack([1 - one, one], axis=1), factors


def test_a_discrete_latent_is_its_most_probable_class() -> None:
    """Knowing it leaves the entropy of a coin of 1/4: of the information of mixed classes, and of a linear reader's."""
    codes, factors = flipped_in_a_quarter()
    no_codes, classes = np.empty((1_600, 0)), codes.argmax(axis=1)[:, None]
    known = 1 - entropy_of_a_coin(1 / 4)
    table = normalised_information(no_codes, classes, factors, 0)
    np.testing.assert_allclose(table, [[known, 0]], atol=1e-12)
    found = F.infomec(codes, factors, discrete=(2,))
    assert found["infomec_modularity"] == 1
    assert found["infomec_explicitness"] == pytest.approx(known / 2, abs=1e-4)
    assert found["infomec_compactness"] == 1


def test_an_independent_class_has_no_information_to_the_last_bit() -> None:
    """Rounding leaves 7e-16 nats for these counts, of which the largest share would be a perfect score."""
    classes, label = np.repeat([0, 1], 8 * 11)[:, None], np.tile(np.repeat([0, 1, 2], [1, 7, 3]), 16)[:, None]
    assert normalised_information(np.empty((176, 0)), classes, label, 0) == 0
    assert modularity_and_compactness(np.eye(2)[classes[:, 0]], label, discrete=(2,)) == (0, 0)


def test_discrete_latents_beside_continuous_ones_and_one_that_never_changes_its_class() -> None:
    factors = grid_sample((4, 6, 3), 3_000)
    shape = np.eye(3)[np.array([2, 0, 1])[factors[:, 2]]]
    sure = np.random.default_rng(0).uniform(0.4, 1, size=(3_000, 1))
    still = 0.6 + 0.3 * np.random.default_rng(1).random((3_000, 1))
    codes = np.concatenate([standardised(factors[:, :2]), sure * shape + (1 - sure) / 3, still, 1 - still], axis=1)
    scores = F.infomec(codes, factors, discrete=(3, 2))
    assert list(scores.values())[:3] == pytest.approx([1, 1, 1], abs=0.02)
    copied = np.concatenate([standardised(factors), shape], axis=1)
    expected = ((1 + 1 + 1 / 2) / 3 - 1 / 4) / (3 / 4)
    assert modularity_and_compactness(copied, factors, discrete=(3,)) == pytest.approx((1, expected), abs=0.02)


@pytest.mark.parametrize("decimals", [1, 8])
def test_a_seed_repeats_to_the_bit_in_any_order_of_rows(decimals: int) -> None:
    """Rounded codes are equal in many rows, so the noise that separates them matters, and the seed with it."""
    rng = np.random.default_rng(0)
    factors = grid_sample((3, 4), 600)
    codes = np.round(factors @ rng.normal(size=(2, 3)) + rng.normal(size=(600, 3)), decimals)
    first = F.infomec(codes, factors, seed=1)
    for order in (np.arange(600)[::-1], rng.permutation(600)):
        assert F.infomec(codes[order], factors[order], seed=1) == first
    other = F.infomec(codes, factors, seed=2)
    assert first["infomec_seed"] == 1
    assert (other["infomec_modularity"] == first["infomec_modularity"]) == (decimals == 8)
    assert other["infomec_modularity"] == pytest.approx(first["infomec_modularity"], abs=0.1)


def test_the_order_of_latents_and_factors_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    factors = grid_sample((3, 4, 2), 900)
    codes = factors @ rng.normal(size=(3, 3)) + rng.normal(size=(900, 3))
    first = F.infomec(codes, factors)
    for order in permutations(range(3)):
        assert F.infomec(codes[:, list(order)], factors) == pytest.approx(first, abs=1e-6)
        assert F.infomec(codes, factors[:, list(order)]) == pytest.approx(first, abs=1e-6)
