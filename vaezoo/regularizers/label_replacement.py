"""Known labels decoded in the place of inferred ones."""

import torch
from torch import Tensor

from vaezoo.functional import Likelihood, full_precision, gaussian_kl, reconstruction
from vaezoo.regularizers.base import Regularizer, gaussian, label_width
from vaezoo.types import Batch, Forward, Term


class LabelReplacement(Regularizer):
    """τ · (−log p(x|y, z) + KL(q(z|x) || p(z))) with the true labels y decoded (Nie et al., 2020, Eq. 9).

    `on_sample` puts the known labels in the place of the inferred ones, in training only. Departs from the paper: its
    Eq. 9 subtracts the KL, a slip of sign. Beyond the paper: labels may be partly observed; what is NaN stays inferred,
    and its KL is counted with that of z.

    Args:
        latent: Latent group whose first dimensions stand for the labels, as many as there are labels.
        tau: Weight.
        likelihood: The model's.
    """

    supervised = True

    def __init__(self, latent: str = "z", tau: float = 1.0, likelihood: Likelihood = "bernoulli") -> None:
        super().__init__()
        self.latent, self.tau, self.likelihood = latent, tau, likelihood

    def on_sample(self, sample: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        """Replace inferred labels by known ones; images without a label hold NaN and stay as they are."""
        z = sample[self.latent]
        inferred, rest = z.tensor_split([label_width(batch.y, z)], dim=1)
        known = torch.where(batch.y.isnan(), inferred, batch.y)
        return sample | {self.latent: torch.cat([known, rest], dim=1)}

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """τ times the bound on −log p(x|y) over the labelled images; 0 in evaluation, where nothing is replaced."""
        q = gaussian(out, self.latent)
        if not self.training:
            return Term(q.mean.new_zeros(()), {})
        labels = label_width(batch.y, q.mean)
        nats = gaussian_kl(q.mean, q.logvar)
        inferred = torch.where(batch.y.isnan(), nats[:, :labels], 0.0).sum(1) + nats[:, labels:].sum(1)
        images = max(len(nats), 1)
        recon = reconstruction(out.reconstruction, full_precision(batch.x), self.likelihood).sum() / images
        kl = inferred.sum() / images
        return Term(self.tau * (recon + kl), {"recon": recon, "nats": kl})
