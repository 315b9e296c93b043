"""Controlled capacity: hold the KL at a target that rises during training."""

from collections.abc import Sequence

from torch import Tensor

from vaezoo.distributed import gather
from vaezoo.regularizers.groups import SpanningTerm, beside
from vaezoo.schedules import linear
from vaezoo.types import Batch, Forward, Term


class Capacity(SpanningTerm):
    """`γ · |KL(q(z|x) || p(z)) − C(t)|` with C rising linearly (Burgess et al., 2018, Eq. 8; Dupont, 2018, Eq. 7).

    The absolute value applies to the batch mean, not to each example. C is capped at what the latent group can carry, Σ
    log K for discrete variables: a higher target could never be met.

    Args:
        latent: Latent group, or groups that share the capacity. Defaults to all groups with a standard normal prior.
        gamma: Weight of the gap.
        max_nats: Capacity at the end of the ramp.
        steps: Training batches over which the capacity rises from 0.
        absolute: Whether to take the absolute value of the gap. False gives γ · (KL − C), as printed in Hajimiri et al.
            (2021), Eq. 6, with the gradient of γ · KL for any C.
        delay: Training batches before it rises (beyond the papers).
    """

    def __init__(
        self,
        latent: Sequence[str] | str | None = None,
        gamma: float = 1000.0,
        max_nats: float = 25.0,
        steps: int = 100_000,
        absolute: bool = True,
        delay: int = 0,
    ) -> None:
        super().__init__(latent)
        self.gamma, self.max_nats, self.steps, self.absolute, self.delay = gamma, max_nats, steps, absolute, delay

    def capacity(self, step: Tensor) -> Tensor:
        """C(t), before the cap."""
        return linear((step - self.delay).clamp(min=0), 0.0, self.max_nats, self.steps)

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """γ times the gap between the mean KL of the global batch and the capacity."""
        groups = [out.posterior[name] for name in self.latents]
        # |mean − C| is not linear in the batch: ranks on different sides of C would cancel.
        nats = gather(beside([q.kl() for q in groups]).sum(1)).mean()
        capacity = self.capacity(step).clamp(max=sum(q.max_nats for q in groups))
        gap = nats - capacity
        return Term(self.gamma * (gap.abs() if self.absolute else gap), {"nats": nats, "capacity": capacity})
