"""LaRVAE: label replacement, and its semi-supervised baselines."""

from collections.abc import Mapping, MutableMapping
from typing import Any

import torch
from lightning.pytorch.utilities import rank_zero_warn
from torch import Tensor
from typing_extensions import Self, Unpack

from vaezoo.models.base import VAE, VAEOptions
from vaezoo.models.larvae_migration import has_one_group, read_both_groups, split_groups, updated_arguments
from vaezoo.nn.latents import GaussianLatent, LatentGroup
from vaezoo.nn.networks import LaRVAENetwork, Shape
from vaezoo.regularizers import KL, LabelReconstruction, LabelReplacement, Regularizer, TotalCorrelation
from vaezoo.regularizers.groups import UNIT_RANGE, SpanningTerm
from vaezoo.regularizers.label_reconstruction import LabelLoss
from vaezoo.types import AnyBatch, Batch, Posterior, Term

LR = 1e-4  # Sec. 5, Baselines


class LaRVAE(VAE):
    """LaRVAE (Nie et al., 2020, Eq. 7): L_unsup + α'·L_recon + τ·L_rep, with L_recon = ‖μ_y(x) − y‖².

    Latent group "y" holds the labels, "z" the nuisance; the decoder reads both, concatenated. L_unsup reads all images,
    the other two terms read labelled images. At τ = 0 this is SS-β-VAE, SS-β-TCVAE or SS-FactorVAE (Locatello et al.,
    2020), depending on `unsupervised`. The paper's p(x|y, z) is Gaussian (Eq. 9), with an unstated σ²: use
    `likelihood="gaussian"`. The default is Bernoulli, as in the papers behind L_unsup.

    Args:
        image_shape: Channels, height and width.
        label_dim: Number of labels. The CLI reads it from the data.
        nuisance_dim: Latent dimensions besides the labels.
        tau: Weight of the label replacement.
        alpha: Weight of the label reconstruction, the paper's α'. The paper gives no value.
        label_loss: "mse", or "bce" on sigmoid(μ_y(x)), as in `LabelReconstruction`. "bce" is meant for the baselines,
            at τ = 0: group "y" then holds logits, but label replacement decodes the raw labels.
        label_range: Where in group "y" labels 0 and 1 lie (beyond the paper, which does not say how labels are scaled).
            At (-√3, √3) evenly spread labels have the variance of the prior, at (0, 1) a twelfth of it.
        unsupervised: Terms of L_unsup besides the reconstruction. They read both groups unless they name one. Defaults
            to β-TCVAE at β = 6.
        regularizers: Extra terms by name. "labels" and "replacement" replace the built-in ones.
        options: `network` (`LaRVAENetwork` by default), `likelihood`, `likelihood_variance`, `lr` (1e-4 by default) and
            `optimizer`, as in `VAE`.
    """

    paper = "Nie et al., 2020"
    signed = ("label_range",)

    def __init__(
        self,
        image_shape: Shape,
        label_dim: int | None = None,
        nuisance_dim: int = 5,
        tau: float = 1.0,
        alpha: float = 100.0,
        label_loss: LabelLoss = "mse",
        label_range: tuple[float, float] = UNIT_RANGE,
        unsupervised: Mapping[str, Regularizer] | None = None,
        regularizers: Mapping[str, Regularizer] | None = None,
        **options: Unpack[VAEOptions],
    ) -> None:
        if label_dim is None:
            raise ValueError("LaRVAE needs label_dim, the number of labels: give label_dim=data.label_size")
        if label_dim == 0:
            raise ValueError("LaRVAE needs labels, and the data has none: give it factors, or take another model")
        if label_dim < 0 or nuisance_dim < 0:
            raise ValueError(f"label_dim must be 1 or more and nuisance_dim 0 or more, not {label_dim}, {nuisance_dim}")
        terms: dict[str, Regularizer] = {"labels": LabelReconstruction("y", alpha, label_loss, label_range)}
        if tau:
            terms["replacement"] = LabelReplacement("y", tau, label_range=label_range)
        if unsupervised is None:
            unsupervised = {"kl": KL(), "tc": TotalCorrelation(weight=5.0)}
        if options.get("network") is None:
            options["network"] = LaRVAENetwork()
        options.setdefault("lr", LR)
        latents: dict[str, LatentGroup] = {"y": GaussianLatent(label_dim)}
        if nuisance_dim:
            latents["z"] = GaussianLatent(nuisance_dim)
        super().__init__(image_shape, latents, {**unsupervised, **terms, **(regularizers or {})}, **options)
        self.label_dim, self.nuisance_dim = label_dim, nuisance_dim
        spanning = [term for term in self._terms().values() if isinstance(term, SpanningTerm)]
        if spanning and not any("y" in term.latents for term in spanning):
            rank_zero_warn('no unsupervised term reads "y": leave latent out to read "y" and "z", as "z" did in 0.1.0')

    def terms(self, batch: AnyBatch) -> dict[str, Term]:
        """Named loss terms. Checks that the batch has `label_dim` labels."""
        batch = self.receive(batch)
        labels = batch.y.shape[1]
        if labels and labels != self.label_dim:
            raise ValueError(
                f"model.label_dim is {self.label_dim}, but the data has {labels} labels: leave model.label_dim out, or "
                f"choose {self.label_dim} factors with data.labelled_factors"
            )
        if self.training and self._is_first:
            self._check_first(batch)
        return super().terms(batch)

    @torch.no_grad()
    def infer_labels(self, x: Tensor) -> Tensor:
        """Labels inferred from images by μ_y(x): see `LabelReconstruction.labels`, (B, label_dim)."""
        return self.labels_of(self.encode(x))

    def labels_of(self, posterior: Mapping[str, Posterior]) -> Tensor:
        """Labels inferred from posteriors, (B, label_dim)."""
        return self.labels_from(posterior["y"].code())

    def labels_from(self, mean: Tensor) -> Tensor:
        """Labels encoded by μ_y(x), (B, label_dim)."""
        term = self.regularizers["labels"]
        return term.labels(mean) if isinstance(term, LabelReconstruction) else mean

    @torch.no_grad()
    def generate(self, labels: Tensor, nuisance: Tensor | None = None) -> Tensor:
        """Generate images with the given labels, in [0, 1], (B, C, H, W).

        Args:
            labels: (B, label_dim), each in [0, 1].
            nuisance: (B, nuisance_dim). Defaults to the prior mean.
        """
        if labels.ndim != 2 or labels.shape[1] != self.label_dim:
            raise ValueError(f"labels must have shape (B, {self.label_dim}), not {tuple(labels.shape)}")
        if nuisance is None:
            nuisance = labels.new_zeros(len(labels), self.nuisance_dim)
        term = self.regularizers["labels"]
        y = term.latents_from(labels) if isinstance(term, LabelReconstruction) else labels
        return self.decode({"y": y, "z": nuisance}).sigmoid()

    def labels_walk(self, labels: Tensor, steps: int = 5) -> Tensor:
        """Copies of labels (B, K) with one label at a time swept from 0 to 1 (Fig. 4), (B, K, S, K)."""
        walked = labels[:, None, None].repeat(1, self.label_dim, steps, 1)
        for k in range(self.label_dim):
            walked[:, k, :, k] = torch.linspace(0, 1, steps, device=labels.device)
        return walked

    def _check_first(self, batch: Batch) -> None:
        """Check the first batch only: the check syncs with the device."""
        term, known = self.regularizers["labels"], batch.y[~batch.y.isnan()]
        if (
            isinstance(term, LabelReconstruction)
            and term.label_loss == "bce"
            and not ((known >= 0) & (known <= 1)).all()
        ):
            raise ValueError("label_loss: bce needs labels in [0, 1]: set data.label_form to rank")
        if (known > 1).any():
            rank_zero_warn(
                f"labels go up to {known.max().item():g}, like class indices, but LaRVAE needs labels in [0, 1]: set "
                "data.label_form to onehot for classes, to rank for ordered factors"
            )

    @classmethod
    def load_from_checkpoint(  # type: ignore[override]  # Lightning's is no plain classmethod
        cls, checkpoint_path: Any, map_location: Any = None, **options: Any
    ) -> Self:
        """Load a checkpoint; arguments written by 0.1.0 are updated first."""
        options = updated_arguments(checkpoint_path, cls.CHECKPOINT_HYPER_PARAMS_KEY) | options
        return super().load_from_checkpoint(checkpoint_path, map_location, **options)

    @classmethod
    def update_arguments(cls, arguments: MutableMapping[str, Any], checkpoint: Mapping[str, Any]) -> None:
        """In 0.1.0, "z" named labels and nuisance together."""
        if has_one_group(checkpoint):
            read_both_groups(arguments)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Split the head and the optimizer's moments of a checkpoint of 0.1.0."""
        if has_one_group(checkpoint):
            read_both_groups(checkpoint[self.CHECKPOINT_HYPER_PARAMS_KEY])
            first = [name for name, _ in self.named_parameters()].index("heads.y.parameters_of.weight")
            split_groups(checkpoint, self.label_dim, first)
        super().on_load_checkpoint(checkpoint)
