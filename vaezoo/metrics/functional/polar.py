"""Errors of blob positions read from two channels of the codes, as WeLa-VAE measures them."""

import numpy as np
from numpy.typing import ArrayLike

from vaezoo.metrics.functional.pool import Array, Scores, as_codes

SIDE = 64.0  # of the canvas, in pixels
DIAGONAL = 90.5  # as the paper rounds 64√2


def polar_error(codes: ArrayLike, positions: ArrayLike) -> Scores:
    """Squared error of positions from the best angle and distance channels (Margonis et al., WeLa-VAE, Eq. 6 and 7).

    Args:
        codes: Codes (N, D), two columns or more.
        positions: Row and column of the blob (N, 2), in pixels.
    """
    unit, c = _unit_channels(codes, positions)
    angle, distance = unit * (np.pi / 2), unit * DIAGONAL
    # |d(cos φ, sin φ) - c|² = d² - 2 d (c₁ cos φ + c₂ sin φ) + |c|², for all pairs of channels at once.
    along = c[:, :1] * np.cos(angle) + c[:, 1:] * np.sin(angle)  # (N, 2D)
    error = (distance**2).mean(axis=0) - 2 * along.T @ distance / len(c) + (c**2).sum(axis=1).mean()
    return {"polar_error": _best_pair(error)}


def cartesian_error(codes: ArrayLike, positions: ArrayLike) -> Scores:
    """Squared error of positions from the best row and column channels (WeLa-VAE, Eq. 5).

    Args:
        codes: Codes (N, D), two columns or more.
        positions: Row and column of the blob (N, 2), in pixels.
    """
    unit, c = _unit_channels(codes, positions)
    by_axis = [((unit * SIDE - axis[:, None]) ** 2).mean(axis=0) for axis in c.T]  # (2D,) each
    return {"cartesian_error": _best_pair(np.add.outer(*by_axis))}


def _unit_channels(codes: ArrayLike, positions: ArrayLike) -> tuple[Array, Array]:
    """Rescale each channel to [0, 1], and set its inversion after all the channels: (N, 2D)."""
    z, c = as_codes(codes), as_codes(positions, name="positions")
    if z.shape[1] < 2 or c.shape[1] != 2 or len(z) != len(c):
        raise ValueError(f"codes {z.shape} and positions {c.shape} must be (N, D) with D at least 2, and (N, 2)")
    reach = np.ptp(z, axis=0)
    unit = (z - z.min(axis=0)) / np.where(reach > 0, reach, 1)
    return np.concatenate([unit, 1 - unit], axis=1), c


def _best_pair(error: Array) -> float:
    """Return the least error (2D, 2D) over pairs of two different channels, inverted or not."""
    channel = np.arange(len(error)) % (len(error) // 2)
    return max(0.0, float(error[channel[:, None] != channel].min()))
