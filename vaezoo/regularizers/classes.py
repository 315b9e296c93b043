"""What PartedVAE asks of discrete latents and of the mixture that depends on them."""

import torch
from torch import Tensor

from vaezoo.distributed import gather
from vaezoo.functional import bhattacharyya, categorical_kl, entropy
from vaezoo.mixture import MixtureGaussian
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
        """KL of the mean posterior, which is not linear in the batch."""
        q = concrete(out.posterior, self.latent)
        priors = q.priors or (None,) * len(q.logits)
        pairs = zip(q.probs, priors, strict=True)
        nats = torch.stack([categorical_kl(gather(probs).mean(0), prior) for probs, prior in pairs]).sum()
        return Term(self.gamma * nats, {"nats": nats})


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
        """Entropy of the probabilities, the batch mean."""
        nats = torch.stack([entropy(probs).mean() for probs in concrete(out.posterior, self.latent).probs]).sum()
        return Term(self.gamma * nats, {"nats": nats})


class Overlap(Regularizer):
    """γ · Σ_k Σ_{i>j} max(BC(p(u_k|i), p(u_k|j)) − δ, 0) with the Bhattacharyya coefficient (Hajimiri et al., Eq. 6).

    Departs from the paper: its sum includes i = j, where BC is 1 whatever the mixture does; that constant is left out.

    Args:
        latent: Latent group with a mixture as its prior.
        gamma: Weight.
        tolerance: Overlap δ that costs nothing.
    """

    def __init__(self, latent: str = "u", gamma: float = 30.0, tolerance: float = 0.15) -> None:
        super().__init__()
        self.latent, self.gamma, self.tolerance = latent, gamma, tolerance

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """Penalty on the prior alone; the batch plays no part."""
        q = out.posterior[self.latent]
        if not isinstance(q, MixtureGaussian):
            raise TypeError(f"latent {self.latent!r} is {type(q).__name__}; overlap needs a MixtureLatent")
        overlaps = []
        for p in q.components:
            i, j = torch.tril_indices(len(p.mean), len(p.mean), -1, device=p.mean.device)
            overlaps.append(bhattacharyya(p.mean[i], p.logvar[i], p.mean[j], p.logvar[j]))
        pairs = torch.cat(overlaps)
        excess = (pairs - self.tolerance).clamp(min=0).sum()
        return Term(self.gamma * excess, {"excess": excess, "largest": pairs.max()})
