"""Factor score as PartedVAE computes it."""

from functools import partial

import numpy as np
import pytest

from tests.helpers.oracle import grid_sample, standardised
from vaezoo.metrics import functional as F


def test_parted_factor_score_drops_the_votes_that_inactive_latents_win() -> None:
    """An inactive copy of factor 1 wins its votes: as released they count nowhere, pruned they go to latent 0."""
    factors = np.stack([np.repeat([0, 1], 200), np.tile([0, 1], 200)], axis=1)
    codes = factors * [1.0, 0.19]  # standard deviations 0.5 and 0.095
    assert F.parted_factor_score(codes, factors)["factor_vae_parted"] == 1
    assert F.parted_factor_score(codes, factors)["factor_vae_parted_active"] == 1
    pruned = partial(F.parted_factor_score, variant="parted_pruned")
    assert pruned(codes, factors)["factor_vae_parted_pruned"] == 1  # its threshold is relative: both are active
    codes = factors * [2.0, 0.19]
    assert pruned(codes, factors)["factor_vae_parted_pruned"] == 1 / 2
    mixed = np.stack([factors.sum(axis=1), 0.01 * factors[:, 1]], axis=1)
    assert F.parted_factor_score(mixed, factors)["factor_vae_parted"] == 1  # all of factor 1's votes are dropped
    assert F.parted_factor_score(0.01 * codes, factors) == {
        "factor_vae_parted": 0,
        "factor_vae_parted_active": 0,
        "factor_vae_parted_seed": 0,
    }


def test_factor_scores_of_three_factors_and_three_dead_latents() -> None:
    """dSprites: x, y, scale and noise score .81 as released, .60 where the noise is left out of the votes."""
    factors = grid_sample((3, 6, 40, 32, 32), 100_000)
    noise = 0.01 * np.random.default_rng(1).normal(size=(100_000, 3))
    codes = np.concatenate([standardised(factors[:, [3, 4, 1]]), noise], axis=1)
    assert F.parted_factor_score(codes, factors)["factor_vae_parted"] == pytest.approx(0.81, abs=0.01)
    found = F.parted_factor_score(codes, factors, variant="parted_pruned")
    assert found["factor_vae_parted_pruned"] == pytest.approx(0.6, abs=0.01)


def test_a_size_latent_that_follows_the_shape_too_lowers_the_score() -> None:
    """With 16 % of its variance from the shape, it wins the shape's votes as well: .74 in place of .81."""
    factors = grid_sample((3, 6, 40, 32, 32), 100_000)
    noise = 0.01 * np.random.default_rng(1).normal(size=(100_000, 3))
    x, y, scale, shape = standardised(factors[:, [3, 4, 1, 0]]).T
    size = 0.84**0.5 * scale + 0.16**0.5 * shape
    codes = np.concatenate([np.stack([x, y, size], axis=1), noise], axis=1)
    assert F.parted_factor_score(codes, factors)["factor_vae_parted"] == pytest.approx(0.74, abs=0.015)


def test_parted_factor_score_votes_once_a_full_batch() -> None:
    """250 rows of each of two values make two batches of 100; the third factor's values are too rare to vote."""
    factors = np.stack([np.repeat([0, 1], 250), np.tile([0, 1], 250), np.arange(500) // 5], axis=1)
    codes = np.stack([factors[:, 0] + 0.0, factors[:, 1] + 0.0], axis=1)
    assert F.parted_factor_score(codes, factors)["factor_vae_parted"] == 1
    mixed = np.stack([codes.sum(axis=1), codes[:, 0] - codes[:, 1]], axis=1)
    assert F.parted_factor_score(mixed, factors)["factor_vae_parted"] < 0.9
    with pytest.raises(ValueError, match="shared by 300 rows"):
        F.parted_factor_score(codes, factors, batch=300)
