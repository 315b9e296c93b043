"""The entropy of classes."""

import torch
from torch import Tensor

from vaezoo.functional import entropy
from vaezoo.regularizers.base import Regularizer, concrete
from vaezoo.types import Batch, Forward, Term


class Entropy(Regularizer):
    """γ · Σ_k H(q(c_k|x)): every image belongs to one class (Hajimiri et al., 2021, Eq. 4).

    Args:
        latent: Discrete latent group.
        gamma: Weight.
    """

    def __init__(self, latent: str = "c", gamma: float = 30.0) -> None:
        super().__init__()
        self.latent, self.gamma = latent, gamma

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """Entropy of the class probabilities, averaged over the batch."""
        nats = torch.stack([entropy(probs).mean() for probs in concrete(out.posterior, self.latent).probs]).sum()
        return Term(self.gamma * nats, {"nats": nats})
