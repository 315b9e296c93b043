"""The check every renderer makes of the factor indices it is given."""

import torch
from torch import Tensor


def check_factors(factors: Tensor, sizes: tuple[int, ...]) -> None:
    """Raise unless `factors` is int64 of shape (B, len(sizes)) with column k in 0..sizes[k] - 1.

    Args:
        factors: Factor indices, a row an image.
        sizes: How many values each factor takes.

    Raises:
        ValueError: The shape, the type or an index is wrong.
    """
    if factors.dim() != 2 or factors.shape[1] != len(sizes):
        raise ValueError(f"factors must have shape (B, {len(sizes)}), got {tuple(factors.shape)}")
    if factors.dtype != torch.int64:
        raise ValueError(f"factors must be int64 indices, got {factors.dtype}: convert them with .long()")
    if len(factors) == 0:
        return
    extremes = torch.stack(torch.aminmax(factors, dim=0)).tolist()
    for column, (low, high, size) in enumerate(zip(*extremes, sizes, strict=True)):
        if low < 0 or high >= size:
            raise ValueError(f"factors[:, {column}] must lie in 0..{size - 1}, got {low if low < 0 else high}")
