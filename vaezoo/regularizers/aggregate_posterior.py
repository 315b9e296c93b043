"""The aggregate posterior of classes."""

import torch
from torch import Tensor

from vaezoo.distributed import gather
from vaezoo.functional import categorical_kl
from vaezoo.regularizers.base import Regularizer, concrete
from vaezoo.types import Batch, Forward, Term


class AggregatePosterior(Regularizer):
    """γ · Σ_k KL(q(c_k) || p(c_k)), q(c_k) = E[q(c_k|x)] over the batch (Hajimiri et al., 2021, Eq. 3, B).

    Args:
        latent: Discrete latent group.
        gamma: Weight.
    """

    def __init__(self, latent: str = "c", gamma: float = 15.0) -> None:
        super().__init__()
        self.latent, self.gamma = latent, gamma

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """KL of the mean posterior; not linear in the batch."""
        q = concrete(out.posterior, self.latent)
        priors = q.priors or (None,) * len(q.logits)
        pairs = zip(q.probs, priors, strict=True)
        nats = torch.stack([categorical_kl(gather(probs).mean(0), prior) for probs, prior in pairs]).sum()
        return Term(self.gamma * nats, {"nats": nats})
