"""Explicitness: how well logistic regression reads the factors from the codes."""

import numpy as np
from numpy.typing import ArrayLike

from vaezoo.metrics.functional.logistic import fit_logistic
from vaezoo.metrics.functional.pool import Array, Labels, Pool, Scores, distinct, hold_out, varying


def area_under_curve(score: Array, label: Labels) -> float:
    """Return the one-vs-rest area under the ROC curve, averaged over the classes that split the rows.

    Args:
        score: Scores (N, C), higher for more likely classes.
        label: Classes (N,).
    """
    areas = []
    for c, column in enumerate(score.T):
        positive = column[label == c]
        if 0 < len(positive) < len(label):
            ordered = np.sort(column)
            # Tied scores share their mean rank; sorting values is much faster than ranking rows.
            ranks = (np.searchsorted(ordered, positive) + np.searchsorted(ordered, positive, side="right") + 1) / 2
            wins = ranks.sum() - len(positive) * (len(positive) + 1) / 2
            areas.append(wins / (len(positive) * (len(label) - len(positive))))
    if not areas:
        raise ValueError("test factors hold one class only: pass more test examples")
    return float(np.mean(areas))


def explicitness(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    test: Pool | None = None,
    test_fraction: float = 1 / 3,
    seed: int = 0,
) -> Scores:
    """Explicitness (Ridgeway and Mozer, 2018): mean area under the ROC curve of logistic regression.

    Departs from the reference: constant codes are ignored instead of dividing by zero, and classes missing from the
    test rows are skipped instead of crashing.

    Args:
        codes: Codes (N, D).
        factors: Factors (N, K).
        test: Codes and factors to score on. Defaults to held-out rows.
        test_fraction: Share of rows to hold out.
        seed: Seed of the split.
    """
    part = hold_out(codes, factors, test, test_fraction, seed)
    alive = varying(part.codes)
    centre, scale = part.codes[:, alive].mean(axis=0), part.codes[:, alive].std(axis=0)
    x, test_x = ((z[:, alive] - centre) / scale for z in (part.codes, part.test_codes))
    once = distinct(part.codes, part.labels)  # a bootstrap resample repeats rows
    train_areas, test_areas = [], []
    for y, test_y in zip(part.labels.T, part.test_labels.T, strict=True):
        model = fit_logistic(x.T.take(once.rows, axis=1).T, y[once.rows], once.times)
        train_areas.append(area_under_curve(_probabilities(model.logits(x)), y))
        test_areas.append(area_under_curve(_probabilities(model.logits(test_x)), test_y))
    train, tested = float(np.mean(train_areas)), float(np.mean(test_areas))
    return {"explicitness": tested, "explicitness_train": train, "explicitness_seed": seed}


def _probabilities(logits: Array) -> Array:
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))
