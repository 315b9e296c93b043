"""The BetaVAE score, or Z-diff: can a linear classifier tell which factor two rows share?"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from vaezoo.metrics.functional.logistic import fit_logistic
from vaezoo.metrics.functional.pool import (
    Array,
    Labels,
    Scores,
    as_codes,
    as_labels,
    as_pool,
    first_columns,
    in_own_order,
)
from vaezoo.metrics.functional.votes import distances, draw_anchors, draw_fellows, group_rows

Variant = Literal["standardised", "reference", "dip", "dip_continuous"]


def beta_vae_score(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    variant: Variant = "standardised",
    points: int = 10_000,
    test_points: int = 5_000,
    pairs: int = 64,
    seed: int = 0,
    discrete: Sequence[int] = (),
    categorical: Sequence[int] = (),
) -> Scores:
    """BetaVAE score (Higgins et al., 2017), on pairs drawn from the pool.

    Args:
        codes: Codes (N, D).
        factors: Factors (N, K).
        variant: "reference" is logistic regression on the raw codes, which depends on their scale; "standardised"
            divides them by their standard deviations first; "dip" is the one-vs-rest linear SVM with hinge loss and C =
            0.01 of DIP-VAE (Kumar et al., 2018, Sec. 4), on the raw codes; "dip_continuous" is the same without
            categorical factors, as the paper does not name its factors.
        points: Training points of the classifier.
        test_points: Test points.
        pairs: Pairs averaged into one point.
        seed: Seed of the pairs.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
        categorical: Columns of the factors that are categories ("dip_continuous").
    """
    if variant == "dip_continuous":
        factors = np.delete(as_codes(factors, name="factors"), list(categorical), axis=1)
    z, v = in_own_order(*as_pool(codes, factors))
    if v.shape[1] == 1:
        raise ValueError("factors has one column that varies: this score tells factors apart and needs two")
    rng, groups, starts = np.random.default_rng(seed), group_rows(as_labels(v)), first_columns(z, discrete)
    factor = rng.integers(v.shape[1], size=points + test_points)
    left = draw_anchors(groups, factor[:, None], (len(factor), pairs), rng)
    right = draw_fellows(groups, factor[:, None], left, left.shape, rng)
    x = distances(z, left, right, starts)
    if variant == "standardised":
        x /= np.sqrt(np.where(x.any(axis=0), np.add.reduceat(z.var(axis=0), starts), 1))
    guess = (support_vectors if variant.startswith("dip") else logistic)(x[:points], factor[:points], x, seed)
    name, hit = f"beta_vae_{variant}", guess == factor
    return {name: float(hit[points:].mean()), f"{name}_train": float(hit[:points].mean()), f"{name}_seed": seed}


def logistic(x: Array, y: Labels, new_x: Array, seed: int) -> Labels:
    """Classify rows by logistic regression; needs no seed."""
    return np.asarray(fit_logistic(x, y).logits(new_x).argmax(axis=1))


def support_vectors(x: Array, y: Labels, new_x: Array, seed: int) -> Labels:
    """Classify rows by one-vs-rest linear SVMs with hinge loss and C = 0.01."""
    from sklearn.svm import LinearSVC

    return np.asarray(LinearSVC(loss="hinge", C=0.01, max_iter=100_000, random_state=seed).fit(x, y).predict(new_x))
