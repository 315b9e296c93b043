"""Latents that stand for labels: how far the inferred ones are from the known."""

import torch
from torch import Tensor

from vaezoo.regularizers.base import gaussian
from vaezoo.regularizers.groups import LabelTerm, label_width
from vaezoo.types import Batch, Forward, Term


class LabelReconstruction(LabelTerm):
    """α' · ‖μ_y(x) − y‖² on labelled images (Nie et al., 2020, Eq. 8), for the first dimensions of a latent group.

    A label that was not observed is NaN and counts for nothing. The Euclidean distance is logged: ℓ2 of the paper.

    Args:
        latent: Latent group whose first dimensions stand for the labels, as many as there are labels. Defaults to "y",
            or to the model's first one with a standard normal prior.
        alpha: Weight, the paper's α'.
    """

    def __init__(self, latent: str | None = None, alpha: float = 100.0) -> None:
        super().__init__(latent)
        self.alpha = alpha

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """α' times the mean squared distance over the labelled images; 0 where there are none."""
        mean = gaussian(out, self.latent).mean
        gap = mean[:, : label_width(batch.y, mean)] - batch.y
        squared = torch.where(batch.y.isnan(), 0.0, gap).square().sum(1)
        images = max(len(squared), 1)
        loss = squared.sum() / images
        return Term(self.alpha * loss, {"squared": loss, "distance": squared.detach().sqrt().sum() / images})
