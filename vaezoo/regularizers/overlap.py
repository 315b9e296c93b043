"""The overlap of a mixture's components."""

import torch
from torch import Tensor

from vaezoo.functional import bhattacharyya
from vaezoo.nn.mixture import MixtureGaussian
from vaezoo.regularizers.base import Regularizer
from vaezoo.types import Batch, Forward, Term


class Overlap(Regularizer):
    """γ · Σ_k Σ_{i>j} max(BC(p(u_k|i), p(u_k|j)) − δ, 0) with the Bhattacharyya coefficient (Hajimiri et al., Eq. 6).

    Departs from the paper: the paper's sum includes i = j, where BC is always 1. We drop that constant.

    Args:
        latent: Latent group with a mixture prior.
        gamma: Weight.
        tolerance: Overlap δ without a penalty.
    """

    def __init__(self, latent: str = "u", gamma: float = 30.0, tolerance: float = 0.15) -> None:
        super().__init__()
        self.latent, self.gamma, self.tolerance = latent, gamma, tolerance

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """Penalty on the prior only; independent of the batch."""
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
