"""Decode known labels instead of inferred ones."""

import torch
from torch import Tensor

from vaezoo.functional import Likelihood, full_precision, reconstruction
from vaezoo.regularizers.base import Host, gaussian
from vaezoo.regularizers.groups import UNIT_RANGE, LabelTerm, beside, label_width
from vaezoo.types import Batch, Forward, Term


class LabelReplacement(LabelTerm):
    """τ · (−log p(x|y, z) + β · KL(q(z|x) || p(z))), the true labels y decoded (Nie et al., 2020, Eq. 9, where β is 1).

    `on_sample` replaces inferred labels by known ones, in training only. Departs from the paper: Eq. 9 subtracts the
    KL, a sign error. Beyond the paper: labels may be partly observed; NaN labels stay inferred, and their KL is added
    to that of z.

    Args:
        latent: Latent group whose first dimensions hold the labels, one per label. Defaults to "y", or to the model's
            first group with a standard normal prior. Its other dimensions, and the other groups with such a prior, are
            z.
        tau: Weight.
        likelihood: Distribution of pixels. Defaults to the model's. The variance is always the model's.
        beta: Weight of the KL (beyond the paper). If the model weights its own KL by more than 1, as β-VAE does, the
            nuisance is cheaper here than there.
        label_range: Where in their latents labels 0 and 1 lie, as in `LabelReconstruction`.
    """

    likelihood: Likelihood
    variance: float = 1.0

    def __init__(
        self,
        latent: str | None = None,
        tau: float = 1.0,
        likelihood: Likelihood | None = None,
        beta: float = 1.0,
        label_range: tuple[float, float] = UNIT_RANGE,
    ) -> None:
        super().__init__(latent, label_range)
        self.tau, self.beta = tau, beta
        self._given_likelihood, self.likelihood = likelihood, likelihood or "bernoulli"

    def attach(self, model: Host) -> None:
        """Take the likelihood from the model."""
        super().attach(model)
        self.variance = model.likelihood_variance
        self.likelihood = self._given_likelihood or model.likelihood

    def on_sample(self, sample: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        """Replace inferred labels by known ones. NaN labels stay inferred."""
        z = sample[self.latent]
        inferred, rest = z.tensor_split([label_width(batch.y, z)], dim=1)
        known = torch.where(batch.y.isnan(), inferred, self.latents_from(batch.y))
        return sample | {self.latent: torch.cat([known, rest], dim=1)}

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """τ times the bound on −log p(x|y) over labelled images; 0 in evaluation, where labels are not replaced."""
        q = gaussian(out, self.latent)
        if not self.training:
            return Term(q.mean.new_zeros(()), {})
        labels = label_width(batch.y, q.mean)
        nats = beside([q.kl(), *(out.posterior[name].kl() for name in self.others)])
        inferred = torch.where(batch.y.isnan(), nats[:, :labels], 0.0).sum(1) + nats[:, labels:].sum(1)
        images = max(len(nats), 1)
        nll = reconstruction(out.reconstruction, full_precision(batch.x), self.likelihood, self.variance)
        recon = nll.sum() / images
        kl = inferred.sum() / images
        return Term(self.tau * (recon + self.beta * kl), {"recon": recon, "nats": kl})
