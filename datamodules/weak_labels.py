"""Weak labels of a position on the canvas: its sector and its ring."""

import math

import torch
from torch import Tensor
from torch.nn.functional import one_hot

CANVAS = 64
TOLERANCE = 1e-6  # of a bin: rounding may not push a value on an edge into the next bin


def polar(rows: Tensor, cols: Tensor) -> tuple[Tensor, Tensor]:
    """Angle and distance of positions, seen from the top left corner.

    Args:
        rows: Rows, (B,) of 0..64.
        cols: Columns, (B,) of 0..64.

    Returns:
        Angle from the left edge in [0, pi / 2] and distance in [0, 64 sqrt(2)], float64 (B,) each.
    """
    rows, cols = rows.double(), cols.double()
    return torch.atan2(cols, rows), torch.hypot(rows, cols)


def memberships(angle: Tensor, distance: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """One-hot labels of WeLa-VAE's Blobs (Margonis et al., 2020, Section 4.1).

    Bin k of width s holds (k s, (k + 1) s]; zero, which no such interval holds, belongs to bin 0.

    Args:
        angle: Angles in [0, pi / 2], (B,).
        distance: Distances in [0, 64 sqrt(2)], (B,).
        bins: The p of the paper, 2 to 8.

    Returns:
        Angle and distance labels, float32 (B, bins) each.

    Raises:
        ValueError: `bins`, an angle or a distance is out of its range.
    """
    if not 2 <= bins <= 8:
        raise ValueError(f"bins must lie in 2..8, got {bins}")
    return (
        _one_hot_bin("angle", angle, math.pi / 2, bins),
        _one_hot_bin("distance", distance, CANVAS * math.sqrt(2), bins),
    )


def _one_hot_bin(name: str, value: Tensor, maximum: float, bins: int) -> Tensor:
    index = (value.double() * bins / maximum - TOLERANCE).floor()  # of zero, -1
    if bool(((value < 0) | (index >= bins)).any()):
        raise ValueError(f"{name} must lie in [0, {maximum:.4f}]")
    return one_hot(index.clamp(min=0).long(), bins).float()
