"""Linear support vector machines on one feature, solved exactly and all classes at once."""

import numpy as np

from vaezoo.metrics.functional.pool import Array, Labels


def fit_one_feature(x: Array, y: Labels, cost: float = 0.01, steps: int = 100) -> tuple[Array, Array]:
    """Fit one-vs-rest machines with squared hinge loss and balanced class weights on one feature.

    The same problem as `LinearSVC(C=cost, class_weight="balanced")`, whose intercept is penalised and whose class
    weight applies to the positive side only once there are more than two classes. With two unknowns, Newton's method
    on the active set settles in a handful of steps.

    Args:
        x: Feature (N,).
        y: Classes (N,), numbered from 0.
        cost: Weight of the loss.
        steps: Most Newton steps.

    Returns:
        Slopes and intercepts, (C,) each.
    """
    counts = np.bincount(y)
    weight = len(y) / (len(counts) * counts)  # of the positive side
    other = weight[::-1] if len(counts) == 2 else np.ones(len(counts))
    powers = np.stack([np.ones_like(x), x, x**2])  # (3, N)
    rows = np.arange(len(y))
    w, b = np.zeros(len(counts)), np.zeros(len(counts))
    for step in range(steps):
        margin = np.multiply.outer(w, x) + b[:, None]  # (C, N)
        active = margin > -1
        own = margin[y, rows] < 1
        active[y, rows] = False
        # Sums of 1, x and x² over the active rows of either side, (3, C).
        negative = 2 * cost * other * np.einsum("pn,cn->pc", powers, active)
        positive = 2 * cost * weight * np.stack([np.bincount(y, own * p, len(counts)) for p in powers])
        n, sx, sxx = positive + negative
        ty, txy, _ = positive - negative
        determinant = (1 + n) * (1 + sxx) - sx**2
        new_w, new_b = ((1 + n) * txy - sx * ty) / determinant, ((1 + sxx) * ty - sx * txy) / determinant
        moved = max(np.abs(new_w - w).max(), np.abs(new_b - b).max())
        rate = 1.0 if step < 20 else 0.5  # a half step breaks the rare cycle between two active sets
        w, b = w + rate * (new_w - w), b + rate * (new_b - b)
        if moved <= 1e-10 * (1 + np.abs(w).max() + np.abs(b).max()):
            break
    return w, b
