"""The FactorVAE score: which latent varies least while one factor is held fixed."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vaezoo.metrics.functional.pool import Array, Scores, as_labels, as_pool, first_columns, in_own_order
from vaezoo.metrics.functional.votes import Rows, draw_anchors, draw_fellows, group_rows, variances


def factor_vae_score(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    votes: int = 10_000,
    test_votes: int = 5_000,
    batch: int = 64,
    threshold: float = 0.05,
    seed: int = 0,
    discrete: Sequence[int] = (),
) -> Scores:
    """FactorVAE score (Kim and Mnih, 2018): majority votes fitted on `votes`, scored on `test_votes`.

    Departs from the reference: votes are drawn from the pool, with factor values at their frequency in it, so nothing
    is encoded twice and incomplete grids work; constant latents never vote; the activity threshold scales down if all
    codes are small.

    Args:
        codes: Codes (N, D).
        factors: Factors (N, K).
        votes: Votes to fit the map from latent to factor.
        test_votes: Votes to score it.
        batch: Rows per vote.
        threshold: Latents with a smaller standard deviation do not vote. The threshold is multiplied by
            the largest one if that is below 1.
        seed: Seed of the votes.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """
    z, v = in_own_order(*as_pool(codes, factors))
    starts, groups, rng = first_columns(z, discrete), group_rows(as_labels(v)), np.random.default_rng(seed)
    factor = rng.integers(v.shape[1], size=votes + test_votes)
    anchor = draw_anchors(groups, factor, factor.shape, rng)
    rows = draw_fellows(groups, factor[:, None], anchor[:, None], (len(factor), batch), rng)
    active = active_latents(z, starts, threshold)
    winner = steadiest(z, rows, starts, active)
    table, test_table = (
        vote_table(winner[part], factor[part], len(starts), v.shape[1]) for part in (slice(votes), slice(votes, None))
    )
    name, latents = "factor_vae_reference", np.arange(len(starts))
    score = test_table[latents, table.argmax(axis=1)].sum() / test_votes if active.any() else 0.0
    train = table.max(axis=1).sum() / votes if active.any() else 0.0
    count = int(active.sum())
    return {name: float(score), f"{name}_train": float(train), f"{name}_active": count, f"{name}_seed": seed}


def parted_factor_score(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    variant: Literal["parted", "parted_pruned"] = "parted",
    batch: int = 100,
    threshold: float = 0.1,
    seed: int = 0,
    discrete: Sequence[int] = (),
) -> Scores:
    """PartedVAE's factor score: disjoint batches of one factor value, one map fitted and scored on them.

    In the released code every latent may win a vote; votes won by inactive latents are then dropped from numerator and
    denominator. On dSprites, x, y, scale and three inactive latents score 0.81 this way, and 0.60 if only active
    latents vote. Constant latents, 0/0 there, never vote here.

    Args:
        codes: Codes (N, D).
        factors: Factors (N, K).
        variant: "parted" as released; "parted_pruned" lets only active latents vote, and counts every vote.
        batch: Rows per vote; the last, incomplete batch of a value is dropped.
        threshold: Least standard deviation of an active latent; for "parted_pruned" as in `factor_vae_score`.
        seed: Seed of the shuffle.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """
    z, v = in_own_order(*as_pool(codes, factors))
    order = np.random.default_rng(seed).permutation(len(z))
    z, labels = z[order], as_labels(v[order])
    starts, groups = first_columns(z, discrete), group_rows(labels)
    rows, factor = [], []
    for k, sorted_rows in enumerate(groups.order):
        place = np.arange(len(z)) - groups.first[k, sorted_rows]  # of each sorted row within its value
        full = place < groups.size[k, sorted_rows] // batch * batch
        rows.append(sorted_rows[full].reshape(-1, batch))
        factor.append(np.full(len(rows[-1]), k))
    if not sum(map(len, rows)):
        raise ValueError(f"factors hold no value shared by {batch} rows: pass more examples, or a smaller batch")
    deviation = deviations(z, starts)
    pruned = variant == "parted_pruned"
    active = active_latents(z, starts, threshold) if pruned else (deviation > 0) & (deviation >= threshold)
    winner = steadiest(z, np.concatenate(rows), starts, active if pruned else deviation > 0)
    table = vote_table(winner, np.concatenate(factor), len(starts), labels.shape[1])[active]
    name, score = f"factor_vae_{variant}", table.max(axis=1).sum() / table.sum() if table.any() else 0.0
    return {name: float(score), f"{name}_active": int(active.sum()), f"{name}_seed": seed}


def deviations(codes: Array, starts: NDArray[np.intp]) -> Array:
    """Return the standard deviation of every latent; that of a constant one is 0 exactly."""
    moving = np.asarray(np.maximum.reduceat(np.ptp(codes, axis=0), starts) > 0)
    return np.asarray(np.sqrt(np.add.reduceat(codes.var(axis=0, ddof=1), starts)) * moving)


def active_latents(codes: Array, starts: NDArray[np.intp], threshold: float) -> NDArray[np.bool_]:
    """Mark the latents that vary by the threshold, which scales down if all codes are small."""
    deviation = deviations(codes, starts)
    return np.asarray((deviation > 0) & (deviation >= threshold * min(1.0, deviation.max())))


def steadiest(codes: Array, rows: Rows, starts: NDArray[np.intp], voting: NDArray[np.bool_]) -> Rows:
    """Return the latent of least normalised variance in each vote, among those that vote."""
    if rows.shape[1] < 2:
        raise ValueError(f"batch={rows.shape[1]} has no variance: draw two rows or more for a vote")
    if not voting.any():
        return np.zeros(len(rows), dtype=np.intp)
    spread = np.add.reduceat(codes.var(axis=0, ddof=1), starts)
    ratio = variances(codes, rows, starts)[:, voting] / spread[voting]
    return np.asarray(np.flatnonzero(voting)[ratio.argmin(axis=1)])


def vote_table(winner: Rows, factor: Rows, latents: int, factors: int) -> NDArray[np.intp]:
    """Count the votes by winning latent and fixed factor, shape (L, K)."""
    return np.bincount(winner * factors + factor, minlength=latents * factors).reshape(latents, factors)
