"""InfoMEC: modularity, explicitness and compactness, as shares of the information in the factors."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax

from vaezoo.metrics.functional.logistic import fit_logistic
from vaezoo.metrics.functional.mutual_information import entropy
from vaezoo.metrics.functional.pool import (
    Array,
    Labels,
    Scores,
    as_labels,
    as_pool,
    categories,
    first_columns,
    in_own_order,
    varying,
)

NEIGHBOURS = 10
LEAST_RANGE = 1 / 20  # of the largest; latents with no more are inactive


def infomec(codes: ArrayLike, factors: ArrayLike, *, seed: int = 0, discrete: Sequence[int] = ()) -> Scores:
    """InfoMEC (Hsu et al., 2023, Sec. 4), as the authors' released code computes it.

    Modularity and compactness compare the largest share of a latent's, or a factor's, normalised mutual information
    with equal shares, over active latents. Explicitness is the share of a factor's uncertainty that logistic regression
    on all latents removes, fitted and scored on the same rows.

    Departs from the released code where that divides by zero: constant factors are left out; a latent or factor without
    information counts as 0; a single factor makes modularity 1, and a single active latent makes compactness 1, unless
    the codes hold no information. Continuous and discrete latents may stand side by side, and the noise that separates
    equal codes has a seed.

    Do not bootstrap it: a row that a resample repeats is its own nearest neighbour.

    Args:
        codes: Codes (N, D).
        factors: Factors (N, K), each a category.
        seed: Seed of the noise that separates equal codes.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes. Their
            most probable classes are scored.
    """
    z, v = in_own_order(*as_pool(codes, factors))
    labels, starts = as_labels(v), first_columns(z, discrete)
    continuous = z[:, : len(starts) - len(discrete)]
    classes = categories(z, starts, discrete)
    spread = np.ptp(continuous, axis=0)
    active = np.append(spread > LEAST_RANGE * spread.max(initial=0), np.ptp(classes, axis=0) > 0)
    scaled = standardised(continuous)
    table = normalised_information(scaled, classes, labels, seed)
    kept = table[active] if active.any() else np.zeros((1, labels.shape[1]))
    chosen = [np.eye(size)[column] for size, column in zip(discrete, classes.T, strict=True)]
    return {
        "infomec_modularity": dominance(kept),
        "infomec_explicitness": explained(np.hstack([scaled, *chosen]), labels),
        "infomec_compactness": dominance(kept.T),
        "infomec_seed": seed,
    }


def standardised(codes: Array) -> Array:
    """Bring each column to mean 0 and variance 1; constant ones become 0."""
    scale = np.where(varying(codes), codes.std(axis=0), 0)
    return np.asarray(np.divide(codes - codes.mean(axis=0), scale, out=np.zeros_like(codes), where=scale > 0))


def normalised_information(continuous: Array, classes: Labels, labels: Labels, seed: int) -> Array:
    """Return the mutual information of latents and factors over the entropy of the factor, shape (L, K).

    That of a continuous latent is estimated from nearest neighbours (Ross, 2014).

    Args:
        continuous: Continuous latents (N, C), standardised.
        classes: Classes of the discrete latents (N, L - C).
        labels: Factors (N, K).
        seed: Seed of the noise that separates equal codes.
    """
    from sklearn.feature_selection import mutual_info_classif

    find = partial(mutual_info_classif, n_neighbors=NEIGHBOURS, random_state=seed)
    rows = []
    # One by one, so that no latent changes the noise of another.
    for j, latent in enumerate(np.hstack([continuous, classes]).T):
        is_discrete = j >= continuous.shape[1]
        rows.append([find(latent[:, None], label, discrete_features=is_discrete)[0] for label in labels.T])
    table = np.array(rows) / [entropy(label) for label in labels.T]
    return np.asarray(np.where(table > 1e-12, table, 0))  # rounding must not make an independent class look informative


def dominance(table: Array) -> float:
    """Return the mean over rows of (max / sum - 1 / n) / (1 - 1 / n), n columns.

    A row of zeros counts as 0. A single column scores 1, unless it holds zeros alone.
    """
    best, total, columns = table.max(axis=1), table.sum(axis=1), table.shape[1]
    if columns == 1:
        return float(table.any())
    excess = columns * best - total
    return float(np.divide(excess, (columns - 1) * total, out=np.zeros(len(table)), where=total > 0).mean())


def explained(x: Array, labels: Labels) -> float:
    """Return the mean over factors of 1 - CE(x) / CE(nothing): with balanced classes, nothing predicts all alike."""
    return float(np.mean([1 - cross_entropy(x, label) / np.log(label.max() + 1) for label in labels.T]))


def cross_entropy(x: Array, label: Labels) -> float:
    """Return the mean log loss of logistic regression without penalty, fitted to classes of equal weight."""
    counts = np.bincount(label)
    weights = len(label) / (len(counts) * counts[label])
    logits = fit_logistic(x, label, weights, penalty=0).logits(x)
    return float(-log_softmax(logits, axis=1)[np.arange(len(label)), label].mean())
