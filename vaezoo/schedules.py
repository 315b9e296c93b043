"""Schedules: pure functions of the step, so that a resumed run continues where it stopped."""

import torch
from torch import Tensor


def linear(step: Tensor, start: float, end: float, steps: int) -> Tensor:
    """Go from start to end in the given number of steps, then stay there.

    Args:
        step: Training batches seen so far; a tensor, so that no device synchronisation is needed.
        start: Value at step 0.
        end: Value from `steps` on.
        steps: Length of the ramp; 0 gives `end` at once.
    """
    if steps < 0:
        raise ValueError(f"steps must be 0 or more, not {steps}")
    progress = (step / steps).clamp(max=1.0) if steps else torch.ones_like(step, dtype=torch.get_default_dtype())
    return start + (end - start) * progress
