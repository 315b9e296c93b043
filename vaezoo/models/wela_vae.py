"""WeLa-VAE: weak labels select one of several disentangled representations."""

from collections.abc import Mapping, MutableMapping, Sequence
from math import prod
from typing import Any, Literal

import torch
from torch import Tensor
from typing_extensions import Unpack

from vaezoo.functional import Estimator, check_classes, full_precision, observed_labels
from vaezoo.models.base import VAE, VAEOptions
from vaezoo.nn.autoencoder import check_images
from vaezoo.nn.latents import GaussianLatent
from vaezoo.nn.networks import DenseNetwork, Network, Shape
from vaezoo.regularizers import KL, LabelLikelihood, Regularizer, TotalCorrelation
from vaezoo.types import AnyBatch, Batch, Forward, Posterior, Term

GAMMA = {2: 2000.0, 3: 1500.0, 4: 1000.0, 5: 800.0, 6: 750.0, 7: 600.0, 8: 500.0}  # Table 1, for 64×64 pixels


class WeLaVAE(VAE):
    """WeLa-VAE (Margonis et al., 2020, Eq. 4): image and weak labels share independent latents.

    The encoder q(z|x, y) reads the image and one-hot labels; one decoder trunk predicts the image and every label.
    Batches hold concatenated one-hot labels, or class indices, one column per label. Four things go beyond the paper.
    Any number of latents: `latent_dim`. Partly observed labels: a NaN label enters the encoder as zeros and drops out
    of the likelihood, as in `LabelLikelihood`; `y=None` means no labels. An encoder without labels:
    `labels_in_encoder=False`. Labels that choose the axes before images can: `labels_first`.

    The full KL is always part of the loss. The scripts behind the paper's table weight the total correlation by β − 1 =
    39, the default here. Eq. 4 uses β: `weighting="paper"`.

    Args:
        image_shape: Channels, height and width.
        label_sizes: Number of classes of each label, in the order of the batch's y.
        latent_dim: Number of latent dimensions. The paper uses one per label.
        beta: The paper's β.
        weighting: "released" weights the total correlation by β − 1, "paper" by β.
        gamma: Weight of the label likelihood. Defaults to the paper's value for Blobs, or to its rule, pixels /
            classes, for other data.
        labels_in_encoder: Whether the encoder reads the labels.
        labels_first: Training batches at the start in which the loss has no image and the labels weigh β, as much as
            the total correlation: with the paper's γ, they could spread over all latents.
        dataset_size: Number of training images, for the total correlation estimator. Defaults to the size of the data.
        estimator: "mws", "mss" or "batch", as in `TotalCorrelation`.
        regularizers: Extra terms by name. "kl", "tc" and "labels" replace the built-in ones. The paper suggests
            `CovarianceMatching` in place of "tc".
        options: `network` (`DenseNetwork` by default), `likelihood`, `likelihood_variance`, `lr` and `optimizer`, as
            in `VAE`.
    """

    paper = "Margonis et al., 2020"

    def __init__(
        self,
        image_shape: Shape,
        label_sizes: Sequence[int],
        latent_dim: int = 2,
        beta: float = 40.0,
        weighting: Literal["released", "paper"] = "released",
        gamma: float | None = None,
        labels_in_encoder: bool = True,
        labels_first: int = 0,
        dataset_size: int | None = None,
        estimator: Estimator = "mws",
        regularizers: Mapping[str, Regularizer] | None = None,
        **options: Unpack[VAEOptions],
    ) -> None:
        if not label_sizes or min(label_sizes) < 2:
            raise ValueError(f"label_sizes {list(label_sizes)}: needs one-hot labels (of the data, label_form: onehot)")
        if weighting not in ("released", "paper"):
            raise ValueError(f"weighting must be 'released' or 'paper', not {weighting!r}")
        if labels_first < 0:
            raise ValueError(f"labels_first must be 0 or more, not {labels_first}")
        gamma = _gamma(image_shape, label_sizes) if gamma is None else gamma
        terms = {
            "kl": KL("z"),
            "tc": TotalCorrelation("z", beta - (weighting == "released"), dataset_size, estimator),
            "labels": LabelLikelihood(gamma, labels_first, beta),
        }
        network = Network.build(options.get("network") or DenseNetwork())
        options["network"] = network
        super().__init__(image_shape, {"z": GaussianLatent(latent_dim)}, {**terms, **(regularizers or {})}, **options)
        self.label_sizes, self.labels_in_encoder = tuple(label_sizes), labels_in_encoder
        self.beta, self.weighting, self.labels_first = beta, weighting, labels_first
        if labels_in_encoder:
            self.encoder = network.encoder(self.image_shape, self.label_sizes)
        self.decoder = network.decoder(self.image_shape, latent_dim, self.label_sizes)

    @classmethod
    def update_arguments(cls, arguments: MutableMapping[str, Any], checkpoint: Mapping[str, Any]) -> None:
        """Version 0.1.0 weighted the total correlation by β; its checkpoints do not say so."""
        if "weighting" not in checkpoint:
            arguments["weighting"] = "paper"

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Store the weighting, even if it is the default."""
        super().on_save_checkpoint(checkpoint)
        checkpoint["weighting"] = self.weighting

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Let a run of 0.1.0 continue with its original weighting."""
        super().on_load_checkpoint(checkpoint)
        replaced = checkpoint.get(self.CHECKPOINT_HYPER_PARAMS_KEY, {}).get("regularizers") or {}
        self.weighting, own = checkpoint.get("weighting", "paper"), self.regularizers["tc"]
        if isinstance(own, TotalCorrelation) and "tc" not in replaced:
            own.weight = self.beta - (self.weighting == "released")

    def training_step(self, batch: AnyBatch, batch_idx: int = 0) -> Tensor:
        """Loss of one batch. Class indices are checked once per epoch: the check syncs with the device."""
        batch = self.receive(batch)
        if batch_idx == 0 and batch.y.shape[1] == len(self.label_sizes):
            check_classes(batch.y, self.label_sizes, "model.label_sizes")
        return super().training_step(batch)

    def encode(self, x: Tensor, y: Tensor | None = None) -> dict[str, Posterior]:
        """q(z|x, y) for images (B, C, H, W) and labels, all, some or none of them observed (see `observed_labels`)."""
        if not self.labels_in_encoder:
            return super().encode(x)
        check_images(x, self.image_shape)
        known = x.new_zeros(len(x), sum(self.label_sizes)) if y is None else observed_labels(y, self.label_sizes)[0]
        return {"z": self.heads["z"](self.encoder(x, known))}

    def reconstruction_term(self, out: Forward, batch: Batch) -> Term:
        """−log p(x|z), averaged over the batch; 0 while labels are learnt alone."""
        term = super().reconstruction_term(out, batch)
        if not self.training or not self.labels_first:
            return term
        return Term(term.loss * (self.step >= self.labels_first), term.logs)

    def decode(self, sample: Mapping[str, Tensor]) -> Tensor:
        """Logits of images from latents by group, (B, C, H, W)."""
        return self.decode_with_labels(sample)[0]

    def decode_with_labels(self, sample: Mapping[str, Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Logits of images (B, C, H, W) and of each label (B, classes)."""
        image, labels = self.decoder(self.beside(sample))
        return full_precision(image), tuple(full_precision(logits) for logits in labels)

    @torch.no_grad()
    def classify(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Most likely class of each label, decoded from the mean code, (B, labels)."""
        labels = self.decode_with_labels({"z": self.encode(x, y)["z"].mode()})[1]
        return torch.stack([logits.argmax(1) for logits in labels], dim=1)


def _gamma(image_shape: Sequence[int], label_sizes: Sequence[int]) -> float:
    """Table 1 for its images and labels; else Section 4.3's rule, image dimension ≈ γ · label dimension."""
    pixels, classes = prod(image_shape), max(label_sizes)
    if pixels == 64 * 64 and set(label_sizes) == {classes} and classes in GAMMA:
        return GAMMA[classes]
    return pixels * len(label_sizes) / sum(label_sizes)
