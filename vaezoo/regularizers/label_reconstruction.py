"""Distance of inferred labels from known ones."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from vaezoo.regularizers.base import gaussian
from vaezoo.regularizers.groups import UNIT_RANGE, LabelTerm, label_width
from vaezoo.types import Batch, Forward, Term

LabelLoss = Literal["mse", "bce"]


class LabelReconstruction(LabelTerm):
    """α' · R_s(μ_y(x), y) on labelled images (Nie et al., 2020, Eq. 4 and 8), for the first dimensions of a group.

    R_s is ‖μ_y(x) − y‖², or the binary cross-entropy of sigmoid(μ_y(x)), summed over labels in [0, 1]. The paper names
    both but does not say how a mean becomes a probability; the sigmoid follows Locatello et al. (2020), the source of
    the baseline in Eq. 4. A clamp would give means outside [0, 1] no gradient. NaN labels are ignored. Also logs the
    Euclidean distance, the paper's ℓ2.

    Args:
        latent: Latent group whose first dimensions hold the labels, one per label. Defaults to "y", or to the model's
            first group with a standard normal prior.
        alpha: Weight; the paper's α'.
        label_loss: "mse", the squared distance, or "bce", the binary cross-entropy.
        label_range: Where in their latents labels 0 and 1 lie, with "mse". It measures in units of the latents, ℓ2 in
            those of the labels.
    """

    def __init__(
        self,
        latent: str | None = None,
        alpha: float = 100.0,
        label_loss: LabelLoss = "mse",
        label_range: tuple[float, float] = UNIT_RANGE,
    ) -> None:
        super().__init__(latent, label_range)
        if label_loss not in ("mse", "bce"):
            raise ValueError(f"label_loss must be 'mse' or 'bce', not {label_loss!r}")
        if label_loss == "bce" and self.label_range != UNIT_RANGE:
            raise ValueError("label_range needs label_loss: mse; with bce the latents are logits of labels")
        self.alpha, self.label_loss = alpha, label_loss

    def labels(self, mean: Tensor) -> Tensor:
        """Labels from posterior means: the means as shares of `label_range`, or their sigmoid with "bce"."""
        low, high = self.label_range
        return mean.sigmoid() if self.label_loss == "bce" else (mean - low) / (high - low)

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """α' times the mean label loss over the labelled images; 0 if there are none."""
        mean, unknown = gaussian(out, self.latent).mean, batch.y.isnan()
        mean = mean[:, : label_width(batch.y, mean)]
        squared = torch.where(unknown, 0.0, self.labels(mean) - batch.y).square().sum(1)
        images = max(len(squared), 1)
        logs = {"distance": squared.detach().sqrt().sum() / images}
        if self.label_loss == "bce":
            nats = F.binary_cross_entropy_with_logits(mean, torch.where(unknown, 0.0, batch.y), reduction="none")
            loss = torch.where(unknown, 0.0, nats).sum() / images
            return Term(self.alpha * loss, {"nats": loss} | logs)
        low, high = self.label_range
        loss = (high - low) ** 2 * squared.sum() / images
        return Term(self.alpha * loss, {"squared": loss} | logs)
