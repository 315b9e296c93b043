"""PartedVAE."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import ReduceLROnPlateau
from typing_extensions import Unpack

from vaezoo.distributed import same_on_all_ranks
from vaezoo.functional import label_accuracy, label_cross_entropy
from vaezoo.models.base import VAE, VAEOptions
from vaezoo.models.lightning_private import has_trainer
from vaezoo.nn.latents import Concrete, ConcreteLatent, GaussianLatent
from vaezoo.nn.mixture import AttendedHead, MixtureLatent
from vaezoo.nn.networks import PartedVAENetwork, Shape
from vaezoo.regularizers import AggregatePosterior, Capacity, Entropy, Overlap, Regularizer
from vaezoo.schedules import linear
from vaezoo.types import Batch, Posterior

SHARPNESS, SHARPENING_STEPS = 8.0, 35_000  # of the attention, from 1 by 2e-4 a batch; released code, not in the paper


class PartedVAE(VAE):
    """PartedVAE (Hajimiri et al., 2021, Eq. 6 and A.5): classes c, class-related u ~ q(u|c, x), class-independent z.

    The decoder reads z and u. As in the released code the gaps to the capacities are absolute values of batch means,
    which Eq. 6 omits. Each batch takes two steps: a supervised one on its labelled rows (Eq. 7), with an Adam of its
    own over the encoder and the logits of c alone, then one of the whole objective on its other rows. A batch without
    labelled rows takes the second step only: the unsupervised model. Labels are class indices, one column a discrete
    variable; NaN where one is not known.

    Optimization is manual, so the Trainer does not accumulate or clip gradients. Its steps, and so `max_steps`,
    count batches: the supervised step is not counted on top. Learning rates are halved on plateaus of the epoch's mean
    losses, an epoch being as many batches as the loader has.

    Args:
        image_shape: Channels, height and width.
        dim_z: Class-independent dimensions.
        dim_u: Class-related dimensions of each discrete variable.
        discrete: Number of classes of each discrete variable.
        priors: p(c) of each discrete variable; uniform where None.
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
        patience: Epochs without progress before a learning rate is halved.
        cooldown: Epochs to wait after that, of the supervised and of the full optimizer.
        threshold: Relative decrease of the epoch's mean loss that counts as progress, of both.
        labels_only: Take the supervised step only: the classifier that the paper compares with.
        regularizers: Further terms by name; "capacity_z", "capacity_u", "aggregate", "entropy" and "overlap" replace
            the model's own.
        options: `network` (`PartedVAENetwork` by default), `likelihood` and `lr`, as in `VAE`.
    """

    paper = "Hajimiri et al., 2021"
    hot_path = ("objective", "supervised")
    epoch_losses: Tensor

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
        patience: int = 2,
        cooldown: tuple[int, int] = (3, 4),
        threshold: tuple[float, float] = (0.1, 0.01),
        labels_only: bool = False,
        regularizers: Mapping[str, Regularizer] | None = None,
        **options: Unpack[VAEOptions],
    ) -> None:
        classes = ConcreteLatent(list(discrete), temperature, priors, decoded=False)
        terms = {
            "capacity_z": Capacity("z", gamma_z, max_nats_z, steps),
            "capacity_u": Capacity("u", gamma_u, max_nats_u, steps),
            "aggregate": AggregatePosterior("c", gamma_c),
            "entropy": Entropy("c", gamma_h),
            "overlap": Overlap("u", gamma_bc, tolerance),
        }
        if options.get("network") is None:
            options["network"] = PartedVAENetwork()
        latents = {"z": GaussianLatent(dim_z), "u": MixtureLatent(discrete, dim_u), "c": classes}
        super().__init__(image_shape, latents, {**terms, **(regularizers or {})}, **options)
        self.automatic_optimization = False
        self.classes = classes
        self.patience, self.cooldown, self.threshold, self.labels_only = patience, cooldown, threshold, labels_only
        # Sum and number of this epoch's supervised and full losses; buffers, as a run may resume within an epoch.
        self.register_buffer("epoch_losses", torch.zeros(2, 2))

    def encode(self, x: Tensor, y: Tensor | None = None) -> dict[str, Posterior]:
        """Posteriors of all latent groups, that of u at the most likely classes and at full sharpness."""
        features, c = self._features_and_classes(x)
        return self._posterior(features, c, c.mode(), torch.full_like(self.step, SHARPNESS, dtype=features.dtype))

    def infer(self, x: Tensor, y: Tensor | None = None) -> tuple[dict[str, Posterior], dict[str, Tensor]]:
        """Posteriors and a sample; in training that of u is taken at the relaxed sample of c (Fig. 2)."""
        if not self.training:
            return super().infer(x)
        features, c = self._features_and_classes(x)
        chosen = c.rsample()
        posterior = self._posterior(features, c, chosen, linear(self.step, 1.0, SHARPNESS, SHARPENING_STEPS))
        return posterior, {"z": posterior["z"].rsample(), "u": posterior["u"].rsample(), "c": chosen}

    def training_step(self, batch: Batch, batch_idx: int = 0) -> Tensor:
        """A supervised step where rows are labelled, then a full one; without a Trainer, the loss of the latter."""
        if not has_trainer(self):
            return super().training_step(self._unlabelled(batch))
        loss = None
        if batch.labelled.any():
            loss = self._supervised_loss(batch, check=batch_idx == 0)
            self._optimize(0, loss)
        if self.labels_only:
            self.step = self.step + 1
        else:
            loss = super().training_step(self._unlabelled(batch))
            self._optimize(1, loss)
        if loss is None:
            raise ValueError("labels_only needs labelled images: set the data's `labels`")
        # Not `is_last_batch`, which is off by an epoch in a run that resumes at the end of one.
        if self.trainer.global_step % self.trainer.num_training_batches == 0:
            self._reduce_lr()
        return loss.detach()

    def supervised(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy of labelled images (Eq. 7), a sum over the discrete variables, and the accuracy."""
        _, c = self._features_and_classes(x)
        return label_cross_entropy(c.logits, y).mean(), label_accuracy(c.classes(), y)

    def validation_step(self, batch: Batch, batch_idx: int = 0) -> Tensor:
        """Loss in evaluation, and the accuracy of q(c|x) where the labels are those of c."""
        self._log_accuracy("val", batch)
        return super().validation_step(batch)

    def test_step(self, batch: Batch, batch_idx: int = 0) -> Tensor:
        """Loss in evaluation, and the accuracy of q(c|x) where the labels are those of c."""
        self._log_accuracy("test", batch)
        return super().test_step(batch)

    def configure_optimizers(self) -> Any:
        """Adam for the encoder and the logits of c, Adam for everything, and a plateau scheduler for each."""
        supervised = torch.optim.Adam([*self.encoder.parameters(), *self.heads["c"].parameters()], lr=self.lr)
        optimizers = [supervised, super().configure_optimizers()]
        return optimizers, [
            ReduceLROnPlateau(optimizer, factor=0.5, patience=self.patience, cooldown=cooldown, threshold=threshold)
            for optimizer, cooldown, threshold in zip(optimizers, self.cooldown, self.threshold, strict=True)
        ]

    @torch.no_grad()
    def classify(self, x: Tensor) -> Tensor:
        """Most likely class of each discrete variable, (B, variables)."""
        return self._features_and_classes(x)[1].classes()

    def draw(self, n: int) -> dict[str, Tensor]:
        """Latents from the prior, (n, D) for each group: classes, then u from their components."""
        like = next(self.decoder.parameters())
        c = self.classes.prior(n, like)
        return {"z": self.latents["z"].prior(n, like), "u": self._mixture().draw(c), "c": c}

    def centre(self) -> dict[str, Tensor]:
        """The middle of the prior: the first classes, and u at the means of their components."""
        centre = super().centre()
        u = [component.mean[:1] for component in self._mixture().components()]
        return centre | {"u": torch.cat(u, dim=1)}

    @torch.no_grad()
    def sample_class(self, n: int, k: int, variable: int = 0) -> Tensor:
        """Images of class k of one discrete variable, all else drawn from the prior, (n, C, H, W)."""
        sample = self.draw(n)
        c = self.classes.choose(sample["c"], variable, k)
        return self.decode(sample | {"u": self._mixture().draw(c)}).sigmoid()

    @torch.no_grad()
    def transfer(self, x: Tensor, donors: Tensor) -> Tensor:
        """Images x with the class-independent attributes of the donors (Fig. 5), (B, donors, C, H, W)."""
        u, z = self.encode(x)["u"].mode(), self.encode(donors)["z"].mode()
        pairs = {"u": u.repeat_interleave(len(z), 0), "z": z.repeat(len(u), 1)}
        return self.decode(pairs).sigmoid().reshape(len(u), len(z), *self.image_shape)

    @torch.no_grad()
    def prior_curves(self, unit: int, points: Tensor) -> Tensor:
        """p(c=i) · p(u_unit|c=i) of each class at points (S,) (Fig. 7 and 10); the sum is the mixture, (K, S)."""
        curves = self._mixture().curves(unit, points)
        return curves.new_tensor(self.classes.shares[unit // self._mixture().dim])[:, None] * curves

    def walkable(self) -> list[str]:
        """All groups: classes are not decoded, but move u."""
        return list(self.latents)

    def walk(self, codes: Mapping[str, Tensor], name: str, unit: int, values: Tensor) -> tuple[str, Tensor]:
        """A class is walked by moving its u to the mean of each component in turn."""
        if name == "c":
            return "u", self._mixture().walk(codes["u"], unit)
        return super().walk(codes, name, unit, values)

    def _features_and_classes(self, x: Tensor) -> tuple[Tensor, Concrete]:
        features = self.encoder(x)
        return features, self.heads["c"](features)

    def _posterior(self, features: Tensor, c: Concrete, chosen: Tensor, sharpness: Tensor) -> dict[str, Posterior]:
        return {"z": self.heads["z"](features), "u": self._mixture()(features, chosen, c.probs, sharpness), "c": c}

    def _mixture(self) -> AttendedHead:
        head = self.heads["u"]
        assert isinstance(head, AttendedHead)
        return head

    def _supervised_loss(self, batch: Batch, check: bool) -> Tensor:
        x, y = batch.x[batch.labelled], batch.y[batch.labelled]
        if check:  # once an epoch, as it waits for the device
            self._check(y)
        loss, accuracy = self.supervised(x, y)
        values = {"train/supervised": loss.detach(), "train/accuracy": accuracy}
        self.log_dict(values | ({"train/loss": loss.detach()} if self.labels_only else {}), batch_size=len(x))
        return loss

    def _unlabelled(self, batch: Batch) -> Batch:
        """Rows of the full step; all of them where labels come within the stream or another term reads them."""
        if batch.labelled.all() or any(term.supervised for term in self._terms().values()):
            return batch
        return batch.at(~batch.labelled)

    def _check(self, y: Tensor) -> None:
        sizes = self.classes.sizes
        if y.shape[1] != len(sizes):
            raise ValueError(f"labels have {y.shape[1]} columns, c has {len(sizes)} variables: set labelled_factors")
        if not bool((y.isnan() | ((y == y.round()) & (y >= 0) & (y < y.new_tensor(sizes)))).all()):
            raise ValueError(f"labels must be class indices below {sizes}: set the data's label_form to index")

    def _optimize(self, which: int, loss: Tensor) -> None:
        """One step of the supervised (0) or of the full (1) optimizer."""
        optimizer = self.optimizers()[which]  # type: ignore[index]  # a list, as there are two
        optimizer.zero_grad()
        if which == 0 and self.trainer.world_size > 1:
            loss = loss + 0 * sum(p.sum() for p in self.parameters())  # DDP waits for every parameter's gradient
        self.manual_backward(loss)
        if which == 0 and not self.labels_only:
            # The wrapper's step would count as a step of the Trainer, and max_steps would be half the batches.
            self.trainer.strategy.optimizer_step(optimizer.optimizer, lambda: None)
        else:
            optimizer.step()
        # A loss that is not finite, whose step a guard may skip, is left out of the epoch's mean.
        self.epoch_losses[which] += torch.stack([loss, torch.ones_like(loss)]).detach().where(loss.isfinite(), 0.0)

    def _reduce_lr(self) -> None:
        """Halve learning rates where the epoch's mean loss has stopped falling; ranks follow the first one's."""
        losses = same_on_all_ranks(self.epoch_losses).tolist()
        for scheduler, (total, count) in zip(self.lr_schedulers(), losses, strict=True):  # type: ignore[arg-type]
            if count:
                scheduler.step(total / count)
        self.epoch_losses.zero_()

    def _log_accuracy(self, stage: str, batch: Batch) -> None:
        if has_trainer(self) and batch.y.shape[1] == len(self.classes.sizes):
            accuracy = label_accuracy(self.classify(batch.x), batch.y)
            self.log(f"{stage}/accuracy", accuracy, batch_size=len(batch.x), sync_dist=True)
