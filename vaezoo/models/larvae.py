"""LaRVAE: label replacement, and the semi-supervised baselines that it contains."""

from collections.abc import Mapping

import torch
from torch import Tensor
from typing_extensions import Unpack

from vaezoo.models.base import VAE, VAEOptions
from vaezoo.nn.latents import GaussianLatent
from vaezoo.nn.networks import LaRVAENetwork, Shape
from vaezoo.regularizers import KL, LabelReconstruction, LabelReplacement, Regularizer, TotalCorrelation


class LaRVAE(VAE):
    """LaRVAE (Nie et al., 2020, Eq. 7): L_unsup + α'·‖μ_y(x) − y‖² + τ·L_rep.

    The first `label_dim` dimensions of the latent group "z" stand for the labels y, the others for the nuisance z.
    L_unsup is read from images of all the data, the other two from labelled ones. At τ = 0 this is SS-β-VAE,
    SS-β-TCVAE or SS-FactorVAE (Locatello et al., 2020), by what `unsupervised` holds.

    Args:
        image_shape: Channels, height and width.
        label_dim: Number of labels.
        nuisance_dim: Latent dimensions beside the labels.
        tau: Weight of the label replacement.
        alpha: Weight of the label reconstruction, the paper's α', on which it is silent.
        unsupervised: Terms of L_unsup beside the reconstruction; those of β-TCVAE at β = 6 where None.
        regularizers: Further terms by name; "labels" and "replacement" replace the model's own.
        options: `network` (`LaRVAENetwork` by default), `likelihood` and `lr`, as in `VAE`.
    """

    paper = "Nie et al., 2020"

    def __init__(
        self,
        image_shape: Shape,
        label_dim: int = 6,
        nuisance_dim: int = 5,
        tau: float = 1.0,
        alpha: float = 100.0,
        unsupervised: Mapping[str, Regularizer] | None = None,
        regularizers: Mapping[str, Regularizer] | None = None,
        **options: Unpack[VAEOptions],
    ) -> None:
        if label_dim < 1 or nuisance_dim < 0:
            raise ValueError(f"label_dim must be 1 or more and nuisance_dim 0 or more, not {label_dim}, {nuisance_dim}")
        terms: dict[str, Regularizer] = {"labels": LabelReconstruction("z", alpha)}
        if tau:
            terms["replacement"] = LabelReplacement("z", tau, options.get("likelihood", "bernoulli"))
        if unsupervised is None:
            unsupervised = {"kl": KL("z"), "tc": TotalCorrelation("z", 5.0)}
        if options.get("network") is None:
            options["network"] = LaRVAENetwork()
        super().__init__(
            image_shape,
            latents={"z": GaussianLatent(label_dim + nuisance_dim)},
            regularizers={**unsupervised, **terms, **(regularizers or {})},
            **options,
        )
        self.label_dim = label_dim

    @torch.no_grad()
    def infer_labels(self, x: Tensor) -> Tensor:
        """Labels μ_y(x) of images, (B, label_dim)."""
        return self.represent(x)[:, : self.label_dim]

    @torch.no_grad()
    def generate(self, labels: Tensor, nuisance: Tensor | None = None) -> Tensor:
        """Images that have these labels, in [0, 1], (B, C, H, W).

        Args:
            labels: (B, label_dim), each from 0 to 1.
            nuisance: (B, nuisance_dim); the prior's mean where None.
        """
        if labels.ndim != 2 or labels.shape[1] != self.label_dim:
            raise ValueError(f"labels must have shape (B, {self.label_dim}), not {tuple(labels.shape)}")
        if nuisance is None:
            nuisance = labels.new_zeros(len(labels), self.latents["z"].size - self.label_dim)
        return self.decode({"z": torch.cat([labels, nuisance], dim=1)}).sigmoid()

    def labels_walk(self, labels: Tensor, steps: int = 5) -> Tensor:
        """Copies of labels (B, K) in which one label at a time goes from 0 to 1 (Fig. 4), (B, K, S, K)."""
        walked = labels[:, None, None].repeat(1, self.label_dim, steps, 1)
        for k in range(self.label_dim):
            walked[:, k, :, k] = torch.linspace(0, 1, steps, device=labels.device)
        return walked
