"""PartedVAE."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from lightning.pytorch.utilities import rank_zero_warn
from torch import Tensor
from typing_extensions import Unpack

from vaezoo.functional import check_classes, label_accuracy, label_cross_entropy
from vaezoo.models.base import VAE, VAEOptions
from vaezoo.models.lightning_private import has_trainer
from vaezoo.models.parted_drawing import PartedDrawing
from vaezoo.models.parted_training import FULL, SUPERVISED, TwoOptimizers, plateau_schedulers
from vaezoo.nn.autoencoder import check_images
from vaezoo.nn.latents import Concrete, ConcreteLatent, GaussianLatent
from vaezoo.nn.mixture import MixtureLatent
from vaezoo.nn.networks import PartedVAENetwork, Shape
from vaezoo.regularizers import AggregatePosterior, Capacity, Entropy, Overlap, Regularizer
from vaezoo.schedules import linear
from vaezoo.types import AnyBatch, Batch, Posterior


class PartedVAE(PartedDrawing, VAE, TwoOptimizers):
    """PartedVAE (Hajimiri et al., 2021, Eq. 6 and A.5): classes c, class-related u ~ q(u|c, x), class-independent z.

    The decoder reads z and u. As in the released code, the capacity gaps are absolute values of batch means; Eq. 6
    omits the absolute value (`absolute=False`). The attention's sharpness is not in the paper. Each batch takes two
    steps: a supervised step on its labelled rows (Eq. 7), with a separate Adam over the encoder and the logits of c,
    then a full step on its other rows. Without labelled rows only the second step runs: the unsupervised model. Labels
    are class indices, one column per discrete variable; NaN marks an unknown label.

    Optimization is manual, so the Trainer cannot accumulate or clip gradients. `max_steps` counts batches: the
    supervised step is not counted. Learning rates are halved when the mean loss of an epoch plateaus. One epoch is one
    pass over the loader.

    Args:
        image_shape: Channels, height and width.
        dim_z: Class-independent dimensions.
        dim_u: Class-related dimensions of each discrete variable.
        discrete: Number of classes of each discrete variable.
        priors: p(c) of each discrete variable. Defaults to uniform.
        temperature: Temperature of the Gumbel-softmax.
        gamma_z: Weight of the gap between the KL of z and its capacity.
        gamma_u: Weight of the gap between the KL of u and its capacity.
        gamma_c: Weight of the KL of the aggregate posterior of c.
        gamma_h: Weight of the entropy of q(c|x).
        gamma_bc: Weight of the overlap of the components of p(u|c).
        tolerance: Overlap δ of two components that costs nothing.
        max_nats_z: Capacity of z at the end of the ramp.
        max_nats_u: Capacity of u at the end of the ramp.
        steps: Training batches over which the capacities rise.
        absolute: Whether the capacity gaps are absolute values.
        sharpness: Factor on the attention logits: ramps up from 1 in training; evaluation uses the final value. The
            paper uses 1.
        sharpening_steps: Length of that ramp in training batches; the defaults add 2e-4 per batch.
        patience: Epochs without progress before the learning rate is halved.
        cooldown: Epochs to wait afterwards, for the supervised and the full optimizer.
        threshold: Relative decrease of the epoch's mean loss that counts as progress, for both.
        eps: Smallest change of the learning rate, for both. Smaller changes are skipped.
        labels_only: Take only the supervised step: the paper's classifier baseline.
        regularizers: Extra terms by name. "capacity_z", "capacity_u", "aggregate", "entropy" and "overlap" replace the
            built-in ones.
        options: `network` (`PartedVAENetwork` by default), `likelihood`, `likelihood_variance`, `lr` and `optimizer`,
            as in `VAE`; both steps use them.
    """

    paper = "Hajimiri et al., 2021"
    hot_path = ("objective", "supervised")

    def __init__(
        self,
        image_shape: Shape,
        dim_z: int = 6,
        dim_u: int = 10,
        discrete: Sequence[int] = (10,),
        priors: Sequence[Sequence[float]] | None = None,
        temperature: float = 0.67,
        gamma_z: float = 15.0,
        gamma_u: float = 15.0,
        gamma_c: float = 15.0,
        gamma_h: float = 30.0,
        gamma_bc: float = 30.0,
        tolerance: float = 0.15,
        max_nats_z: float = 7.0,
        max_nats_u: float = 7.0,
        steps: int = 100_000,
        absolute: bool = True,
        sharpness: float = 8.0,
        sharpening_steps: int = 35_000,
        patience: int = 2,
        cooldown: tuple[int, int] = (3, 4),
        threshold: tuple[float, float] = (0.1, 0.01),
        eps: tuple[float, float] = (1e-6, 1e-7),
        labels_only: bool = False,
        regularizers: Mapping[str, Regularizer] | None = None,
        **options: Unpack[VAEOptions],
    ) -> None:
        classes = ConcreteLatent(list(discrete), temperature, priors, decoded=False)
        terms = {
            "capacity_z": Capacity("z", gamma_z, max_nats_z, steps, absolute),
            "capacity_u": Capacity("u", gamma_u, max_nats_u, steps, absolute),
            "aggregate": AggregatePosterior("c", gamma_c),
            "entropy": Entropy("c", gamma_h),
            "overlap": Overlap("u", gamma_bc, tolerance),
        }
        if options.get("network") is None:
            options["network"] = PartedVAENetwork()
        latents = {"z": GaussianLatent(dim_z), "u": MixtureLatent(discrete, dim_u), "c": classes}
        super().__init__(image_shape, latents, {**terms, **(regularizers or {})}, **options)
        self.sharpness, self.sharpening_steps, self.labels_only = sharpness, sharpening_steps, labels_only
        self.plateau = (patience, cooldown, threshold, eps)

    def encode(self, x: Tensor, y: Tensor | None = None) -> dict[str, Posterior]:
        """Posteriors of all latent groups; u is inferred at the most likely classes and at full sharpness."""
        features, c = self._features_and_classes(x)
        return self._posterior(features, c, c.mode(), features.new_full((), self.sharpness))

    def infer(self, x: Tensor, y: Tensor | None = None) -> tuple[dict[str, Posterior], dict[str, Tensor]]:
        """Posteriors and a sample. In training, u is inferred at the relaxed sample of c (Fig. 2)."""
        if not self.training:
            return super().infer(x)
        features, c = self._features_and_classes(x)
        chosen = c.rsample()
        sharpness = linear(self.step, 1.0, self.sharpness, self.sharpening_steps)
        posterior = self._posterior(features, c, chosen, sharpness)
        return posterior, {"z": posterior["z"].rsample(), "u": posterior["u"].rsample(), "c": chosen}

    def training_step(self, batch: AnyBatch, batch_idx: int = 0) -> Tensor:
        """A supervised step if rows are labelled, then a full step. Without a Trainer, return the full loss."""
        batch = self.receive(batch)
        if not has_trainer(self):
            return super().training_step(self._unlabelled(batch))
        loss, first = None, self._is_first
        self._is_first = False
        if first and not self.labels_only and not batch.labelled.any():
            rank_zero_warn("the first batch holds no labelled image: PartedVAE trains without labels; set data.labels")
        if batch.labelled.any():
            loss = self._supervised_loss(batch, check=batch_idx == 0)
            self.optimize(SUPERVISED, loss, counted=self.labels_only)
        if self.labels_only:
            self.step = self.step + 1
        else:
            loss = super().training_step(self._unlabelled(batch))
            self.optimize(FULL, loss)
        if loss is None:
            raise ValueError("labels_only needs labelled images: let the loader yield labels (data.labels)")
        self.reduce_lr()
        return loss.detach()

    def supervised(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy of labelled images (Eq. 7), summed over the discrete variables, and the accuracy."""
        _, c = self._features_and_classes(x)
        return label_cross_entropy(c.logits, y).mean(), label_accuracy(c.classes(), y)

    def validation_step(self, batch: AnyBatch, batch_idx: int = 0) -> Tensor:
        """Loss in evaluation, and the accuracy of q(c|x) where the labels are those of c."""
        self._log_accuracy("val", self.receive(batch))
        return super().validation_step(batch)

    def test_step(self, batch: AnyBatch, batch_idx: int = 0) -> Tensor:
        """Loss in evaluation, and the accuracy of q(c|x) where the labels are those of c."""
        self._log_accuracy("test", self.receive(batch))
        return super().test_step(batch)

    def configure_optimizers(self) -> Any:
        """One optimizer for the encoder and the logits of c, one for all weights; each has a plateau scheduler."""
        params = [*self.encoder.parameters(), *self.heads["c"].parameters()]
        own = partial(torch.optim.Adam, lr=self.lr) if self.optimizer is None else self.optimizer
        optimizers = [own(params), super().configure_optimizers()]
        return optimizers, plateau_schedulers(optimizers, *self.plateau)

    @torch.no_grad()
    def classify(self, x: Tensor) -> Tensor:
        """Most likely class of each discrete variable, (B, variables)."""
        return self._features_and_classes(x)[1].classes()

    def _features_and_classes(self, x: Tensor) -> tuple[Tensor, Concrete]:
        check_images(x, self.image_shape)
        features = self.encoder(x)
        return features, self.heads["c"](features)

    def _posterior(self, features: Tensor, c: Concrete, chosen: Tensor, sharpness: Tensor) -> dict[str, Posterior]:
        return {"z": self.heads["z"](features), "u": self.mixture(features, chosen, c.probs, sharpness), "c": c}

    def _supervised_loss(self, batch: Batch, check: bool) -> Tensor:
        x, y, _ = batch.at(batch.labelled)
        if check:  # once an epoch, as it waits for the device
            check_classes(y, self.classes.sizes, "model.discrete")
        loss, accuracy = self.supervised(x, y)
        terms = {"supervised": loss} | ({"loss": loss} if self.labels_only else {})
        self.log_training(terms, {"accuracy": accuracy}, len(x))
        return loss

    def _unlabelled(self, batch: Batch) -> Batch:
        """Rows of the full step; all of them where labels come within the stream or another term reads them."""
        if batch.labelled.all() or any(term.supervised for term in self._terms().values()):
            return batch
        return batch.at(~batch.labelled)

    def _log_accuracy(self, stage: str, batch: Batch) -> None:
        if has_trainer(self) and batch.y.shape[1] == len(self.classes.sizes):
            self.log_evaluation(stage, {"accuracy": label_accuracy(self.classify(batch.x), batch.y)}, len(batch.x))
