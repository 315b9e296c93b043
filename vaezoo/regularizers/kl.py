"""The KL term of the evidence lower bound."""

from collections.abc import Sequence

import torch
from torch import Tensor

from vaezoo.regularizers.groups import SpanningTerm
from vaezoo.types import Batch, Forward, Term


class KL(SpanningTerm):
    """β · KL(q(z|x) || p(z)): VAE at β = 1 (Kingma & Welling, 2014), β-VAE above (Higgins et al., 2017, Eq. 4).

    Args:
        latent: Latent group or groups. Defaults to all groups with a standard normal prior.
        beta: Weight.
    """

    def __init__(self, latent: Sequence[str] | str | None = None, beta: float = 1.0) -> None:
        super().__init__(latent)
        self.beta = beta

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """β times the batch mean of the summed KL."""
        parts = {f"nats_{name}": out.posterior[name].kl().sum(1).mean() for name in self.latents}
        nats = torch.stack(list(parts.values())).sum()
        return Term(self.beta * nats, {"nats": nats} | (parts if len(parts) > 1 else {}))
