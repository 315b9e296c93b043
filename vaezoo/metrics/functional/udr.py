"""Unsupervised disentanglement ranking: do runs of one model agree on their latents?"""

from collections.abc import Sequence
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from vaezoo.metrics.functional.pool import Array, Scores, as_codes

UNINFORMATIVE = 0.01  # nats: below it a latent is taken for noise and set to zero


def udr(
    codes: Sequence[ArrayLike],
    kl: Sequence[ArrayLike],
    *,
    variant: Literal["lasso", "spearman"] = "lasso",
    alpha: float = 0.1,
    kl_threshold: float | None = UNINFORMATIVE,
) -> Scores:
    """Unsupervised disentanglement ranking (Duan et al., 2020), one score per run; higher means better agreement.

    Args:
        codes: Codes (N, D) of the same N examples, one array per run.
        kl: Mean KL divergence of each latent (D,) from its prior, in nats, one array per run.
        variant: Similarity of two latents: "lasso" coefficients or "spearman" rank correlation.
        alpha: Penalty of the lasso.
        kl_threshold: Ignore latents with a smaller KL divergence. None keeps all.
    """
    tables, informative = [], []
    for run, divergence in zip(codes, kl, strict=True):
        z, nats = as_codes(run), np.asarray(divergence, dtype=np.float64)
        if nats.shape != (z.shape[1],):
            raise ValueError(f"kl must hold one mean value per latent, shape ({z.shape[1]},), got {nats.shape}")
        spread = z.std(axis=0)
        usable = (nats > UNINFORMATIVE) & (np.ptp(z, axis=0) > 0)
        tables.append(np.where(usable, (z - z.mean(axis=0)) / np.where(spread > 0, spread, 1), 0))
        informative.append(np.ones(len(nats), dtype=bool) if kl_threshold is None else nats > kl_threshold)
    if len(tables) < 2 or len({len(z) for z in tables}) > 1:
        raise ValueError("codes must come from two runs or more, all on the same examples")
    pairwise = np.full((len(tables), len(tables)), np.nan)
    for i, j in permutations(range(len(tables)), 2):
        table = lasso(tables[i], tables[j], alpha) if variant == "lasso" else spearman(tables[i], tables[j])
        pairwise[i, j] = relative_strength(table[np.ix_(informative[i], informative[j])])
    scores = np.nanmedian(pairwise, axis=0)
    name = f"udr_{variant}"
    return {name: float(scores.mean()), **{f"{name}_run_{i}": float(score) for i, score in enumerate(scores)}}


def relative_strength(table: Array) -> float:
    """Score how nearly a similarity matrix pairs latents one to one."""
    if not table.size:
        return 0.0
    halves = []
    for axis in (0, 1):
        best, total = table.max(axis=axis), table.sum(axis=axis)
        halves.append(np.divide(best**2, total, out=np.zeros_like(best), where=total > 0).mean())
    return float(np.mean(halves))


def lasso(source: Array, target: Array, alpha: float) -> Array:
    """Return the absolute lasso coefficients of every target latent on the source latents, shape (D, E)."""
    from sklearn.linear_model import Lasso

    weights = Lasso(alpha=alpha, precompute=True).fit(source, target).coef_
    return np.asarray(np.abs(weights)).reshape(target.shape[1], -1).T


def spearman(source: Array, target: Array) -> Array:
    """Return the absolute rank correlation of every pair of latents, shape (D, E); 0 for a constant one."""
    from scipy.stats import rankdata

    ranks = [rankdata(z, axis=0) - (len(z) + 1) / 2 for z in (source, target)]
    sizes = [np.sqrt((r**2).sum(axis=0)) for r in ranks]
    left, right = (r / np.where(size > 0, size, 1) for r, size in zip(ranks, sizes, strict=True))
    return np.asarray(np.abs(left.T @ right))
