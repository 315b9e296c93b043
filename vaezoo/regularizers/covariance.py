"""Match the moments of the aggregate posterior with those of the prior."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from vaezoo.distributed import gather
from vaezoo.functional import covariance
from vaezoo.regularizers.base import Host
from vaezoo.regularizers.groups import SpanningTerm
from vaezoo.types import Batch, Forward, Term


class CovarianceMatching(SpanningTerm):
    """Pull Cov[z] towards the identity (Kumar et al., 2018, Eq. 6 and 7).

    Counts both triangles of the matrix. The running estimate (footnote 4) mixes the minibatch covariance into that of
    earlier batches; gradients flow through the minibatch only.

    Args:
        latent: Latent group, or groups to concatenate. Defaults to all groups with a standard normal prior.
        variant: "i" matches Cov[mu(x)] (Eq. 6); "ii" adds E[Sigma(x)] (Eq. 7).
        lambda_od: Off-diagonal weight.
        lambda_d: Diagonal weight.
        lambda_3: Weight of the squared third central moments of q(z), summed over dimensions.
        momentum: Weight of the minibatch in the running covariance; 1 keeps no running estimate.
        dim: Number of latent dimensions. Defaults to the model's.
    """

    running: Tensor

    def __init__(
        self,
        latent: Sequence[str] | str | None = None,
        variant: Literal["i", "ii"] = "i",
        lambda_od: float = 10.0,
        lambda_d: float = 100.0,
        lambda_3: float = 0.0,
        momentum: float = 1.0,
        dim: int | None = None,
    ) -> None:
        super().__init__(latent)
        if variant not in ("i", "ii"):
            raise ValueError(f"variant must be 'i' or 'ii', not {variant!r}")
        if not 0 < momentum <= 1:
            raise ValueError(f"momentum must be above 0 and at most 1, not {momentum}")
        self.variant, self.momentum, self.dim = variant, momentum, dim
        self.lambda_od, self.lambda_d, self.lambda_3 = lambda_od, lambda_d, lambda_3
        self.register_buffer("running", torch.eye(dim or 0))

    def attach(self, model: Host) -> None:
        """Allocate the running covariance."""
        super().attach(model)
        dim = self.dim_in(model, self.dim)
        if self.momentum < 1 and not self.running.numel():
            self.running = torch.eye(dim)

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """Weighted squared distance of the moments from those of a standard normal."""
        q = self.posterior(out)
        # Moments are not linear in the batch: a mean over ranks would be biased.
        mean, variance = gather(q.mean), gather(q.logvar).exp()
        cov = covariance(mean)  # (D, D)
        if self.variant == "ii":
            cov = cov + variance.mean(0).diag()
        if self.momentum < 1:
            cov = self._mix(cov)
        off, diag = _identity_gap(cov)
        third = _third_moments(mean, variance).square().sum()
        loss = self.lambda_od * off + self.lambda_d * diag + self.lambda_3 * third
        return Term(loss, {"off_diagonal": off, "diagonal": diag, "third_moments": third})

    def _mix(self, cov: Tensor) -> Tensor:
        if not self.running.numel():
            raise ValueError("a running covariance (momentum below 1) outside a model needs dim")
        cov = (1 - self.momentum) * self.running + self.momentum * cov
        if self.training:
            self.running.copy_(cov.detach())
        return cov


def _identity_gap(cov: Tensor) -> tuple[Tensor, Tensor]:
    """Σ_{i≠j} C_ij² and Σ_i (C_ii − 1)²."""
    diagonal = cov.diagonal()
    return (cov - diagonal.diag()).square().sum(), (diagonal - 1).square().sum()


def _third_moments(mean: Tensor, variance: Tensor) -> Tensor:
    """Third central moment of each dimension of q(z): E[d³ + 3dσ²] with d = μ − E[μ], (D,)."""
    d = mean - mean.mean(0)
    return (d**3 + 3 * d * variance).mean(0)
