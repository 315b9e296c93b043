"""The KL term of the evidence lower bound."""

from torch import Tensor

from vaezoo.regularizers.base import Regularizer
from vaezoo.types import Batch, Forward, Term


class KL(Regularizer):
    """β · KL(q(z|x) || p(z)): VAE at β = 1 (Kingma & Welling, 2014), β-VAE above (Higgins et al., 2017, Eq. 4).

    Args:
        latent: Latent group the term reads.
        beta: Weight.
    """

    def __init__(self, latent: str = "z", beta: float = 1.0) -> None:
        super().__init__()
        self.latent, self.beta = latent, beta

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """β times the batch mean of the summed KL."""
        nats = out.posterior[self.latent].kl().sum(1).mean()
        return Term(self.beta * nats, {"nats": nats})
