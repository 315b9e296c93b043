"""Schedules: pure functions of the step, so resumed runs continue exactly."""

import torch
from torch import Tensor


def linear(step: Tensor, start: float, end: float, steps: int) -> Tensor:
    """Ramp linearly from start to end, then stay there.

    Args:
        step: Training batches seen so far; a tensor, to avoid a device sync.
        start: Value at step 0.
        end: Value from step `steps` on.
        steps: Length of the ramp; 0 returns `end` at once.
    """
    if steps < 0:
        raise ValueError(f"steps must be 0 or more, not {steps}")
    progress = (step / steps).clamp(max=1.0) if steps else torch.ones_like(step, dtype=torch.get_default_dtype())
    return start + (end - start) * progress
