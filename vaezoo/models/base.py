"""Base class of every model: an autoencoder plus an ordered dictionary of regularizers, and how to train them."""

from collections.abc import Mapping, MutableMapping, Sized
from typing import Any, ClassVar, TypedDict

import torch
from torch import Tensor, nn

from vaezoo.functional import Likelihood, full_precision, reconstruction
from vaezoo.models.logged import Logged
from vaezoo.models.noise import seed_batch
from vaezoo.models.optimizers import OptimizerCallable, as_callable, fused
from vaezoo.models.receiving import Receiver
from vaezoo.nn.autoencoder import Autoencoder
from vaezoo.nn.latents import LatentGroup
from vaezoo.nn.networks import Network, Shape
from vaezoo.regularizers import KL, Regularizer
from vaezoo.specs import plain
from vaezoo.types import AnyBatch, Batch, Forward, Term, indices


class VAEOptions(TypedDict, total=False):
    """Arguments that every model forwards to `VAE`."""

    network: Network | None
    likelihood: Likelihood
    lr: float
    likelihood_variance: float
    optimizer: OptimizerCallable | None


class VAE(Autoencoder, Receiver, Logged):
    """Variational autoencoder (Kingma & Welling, 2014), and the base class of every model in the zoo.

    A paper is a subclass that names its latents and its regularizers. DataLoaders may yield anything `Batch.of`
    accepts: images, (images, labels), mappings or a `Batch`; pixels are floats in [0, 1] or bytes.

    Args:
        image_shape: Channels, height and width.
        latents: Latent groups by name. Defaults to 10 Gaussian dimensions named "z".
        regularizers: Loss terms besides the reconstruction, by name. Defaults to the plain KL.
        network: Encoder and decoder. Defaults to `BurgessNetwork`.
        likelihood: Distribution of pixels given latents. All of them apply a sigmoid to the decoder output.
        lr: Learning rate of Adam.
        likelihood_variance: σ² of the "gaussian" likelihood. The reconstruction is weighted by 1/σ².
        optimizer: Callable from parameters to an optimizer, e.g. `functools.partial(torch.optim.Adagrad, lr=0.01)`; in
            YAML `{class_path: torch.optim.Adagrad, init_args: {lr: 0.01}}`. Its learning rate overrides `lr`.
            Regularizers with parameters keep their own options. Defaults to Adam.
    """

    paper: ClassVar[str] = "Kingma & Welling, 2014"
    """Paper that the model comes from, which tracked runs are tagged with; a subclass names its own."""

    hot_path: ClassVar[tuple[str, ...]] = ("objective",)
    """Methods from tensors to losses and back, which `Compile` compiles; no choice in them depends on values."""

    dataset_size: int | None = None
    """Number of training images, known from the first training on; checkpoints keep it."""

    step: Tensor
    regularizers: nn.ModuleDict

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a plain attribute at once: Lightning notes the name of the running hook some forty times a step."""
        if (value is None or type(value) is str) and name in self.__dict__:
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)

    def __init__(
        self,
        image_shape: Shape,
        latents: Mapping[str, LatentGroup] | None = None,
        regularizers: Mapping[str, Regularizer] | None = None,
        network: Network | None = None,
        likelihood: Likelihood = "bernoulli",
        lr: float = 5e-4,
        likelihood_variance: float = 1.0,
        optimizer: OptimizerCallable | None = None,
    ) -> None:
        super().__init__(image_shape, latents, network)
        if likelihood_variance != 1 and (likelihood != "gaussian" or not likelihood_variance):
            raise ValueError(
                f"likelihood_variance {likelihood_variance} must be above 0, and needs likelihood: gaussian, not "
                f"{likelihood}"
            )
        self.likelihood, self.likelihood_variance, self.lr = likelihood, likelihood_variance, lr
        self.optimizer = None if optimizer is None else as_callable(optimizer)
        # Counts training batches; Lightning's global_step counts optimizer steps.
        self.register_buffer("step", torch.zeros((), dtype=torch.long))
        self.regularizers = nn.ModuleDict()
        self.save_hyperparameters(self.spec["init_args"])
        for name, regularizer in ({"kl": KL()} if regularizers is None else regularizers).items():
            self.regularizers[name] = Regularizer.build(regularizer)
        self._attach()

    def add_regularizer(self, name: str, regularizer: Regularizer) -> None:
        """Add or replace a loss term. Checkpoints store it, so loading needs no extra argument."""
        regularizer.attach(self)
        self.regularizers[name] = regularizer.to(self.device)
        self.hparams["regularizers"] = {**(self.hparams.get("regularizers") or {}), name: plain(regularizer, name)}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Store the model class, for `vaezoo.load`, and the number of training images."""
        checkpoint["model_class"], checkpoint["dataset_size"] = self.spec["class_path"], self.dataset_size

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Rebuild the regularizers that had been added to the saved model."""
        saved = checkpoint.get(self.CHECKPOINT_HYPER_PARAMS_KEY, {}).get("regularizers") or {}
        for name, spec in saved.items():
            if name not in self.regularizers:
                self.add_regularizer(name, Regularizer.build(spec))
        self._attach(checkpoint.get("dataset_size"))

    @classmethod
    def update_arguments(cls, arguments: MutableMapping[str, Any], checkpoint: Mapping[str, Any]) -> None:
        """Update constructor arguments written by an earlier version, in place. The checkpoint holds the version."""

    def on_train_start(self) -> None:
        """Tell the terms the number of training images."""
        images = getattr(self.trainer.train_dataloader, "dataset", None)
        # A run of 0.1.0 did not know, and goes on as it began.
        if isinstance(images, Sized) and (self.dataset_size is not None or not self.step):
            self._attach(len(images))

    def forward(self, batch: Batch) -> Forward:
        """Encode, sample, let regularizers edit the sample, decode. In evaluation the sample is the mode."""
        posterior, sample = self.infer(batch.x, batch.y)
        if self.training:
            for regularizer in self._terms().values():
                sample = regularizer.on_sample(sample, batch)
        return Forward(posterior, sample, *self.decode_with_labels(sample), self.encode)

    def terms(self, batch: AnyBatch) -> dict[str, Term]:
        """Named loss terms: "recon" and one per regularizer.

        In training, supervised terms read the labelled images; all other terms read the rest. If every image is
        labelled, the batch is encoded twice: without labels for the other terms, and with labels.
        """
        batch, split = self.receive(batch), False
        if self.training:
            self.check_labels(batch, self._label_readers())
            split = any(term.supervised for term in self._terms().values())
        if split and batch.labelled.all():
            batch = batch.twice()
        return self.objective(batch, _rows(batch) if split else None)

    def objective(self, batch: Batch, rows: Mapping[bool, Tensor] | None) -> dict[str, Term]:
        """Forward half of a training step: from the batch to the loss terms.

        Args:
            batch: The images and labels.
            rows: Indices of the images read by supervised (True) and other (False) terms. Defaults to all images.
        """
        out = self(batch)
        with torch.autocast(batch.x.device.type, enabled=False):  # loss maths stays in float32
            parts = {False: (out, batch), True: (out, batch)}
            if rows is not None:
                parts = {labelled: (out.at(index), _part(batch, index, labelled)) for labelled, index in rows.items()}
            terms = {"recon": self.reconstruction_term(*parts[False])}
            for name, regularizer in self._terms().items():
                terms[name] = regularizer(*parts[regularizer.supervised], self.step)
        return terms

    def reconstruction_term(self, out: Forward, batch: Batch) -> Term:
        """−log p(x|z), averaged over the batch."""
        x = full_precision(batch.x)
        return Term(reconstruction(out.reconstruction, x, self.likelihood, self.likelihood_variance).mean(), {})

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """Seed the batch's noise from seed, rank and batch number, which Lightning restores on resume."""
        super().on_train_batch_start(batch, batch_idx)
        seed_batch(self.trainer.global_rank, self.trainer.fit_loop.total_batch_idx, self.device)

    def on_validation_batch_start(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Seed the noise of terms that draw in evaluation, such as permutations, so each evaluation repeats."""
        seed_batch(self.trainer.global_rank, batch_idx, self.device, dataloader_idx)

    def on_test_batch_start(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Same as in validation."""
        seed_batch(self.trainer.global_rank, batch_idx, self.device, dataloader_idx)

    def training_step(self, batch: AnyBatch, batch_idx: int = 0) -> Tensor:
        """Loss of one batch; advances `step` by one. Works without a Trainer."""
        loss = self._logged_loss(batch, "train")
        self.step = self.step + 1  # not in place: the backward pass may still read the old one
        return loss

    def validation_step(self, batch: AnyBatch, batch_idx: int = 0) -> Tensor:
        """Loss in evaluation."""
        return self._logged_loss(batch, "val")

    def test_step(self, batch: AnyBatch, batch_idx: int = 0) -> Tensor:
        """Loss in evaluation."""
        return self._logged_loss(batch, "test")

    def predict_step(self, batch: AnyBatch, batch_idx: int = 0) -> Tensor:
        """Codes of a batch."""
        return self.codes(self.receive(batch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam, or the given `optimizer`. Regularizers with parameters get their own options."""
        own = {id(p) for regularizer in self._terms().values() for p in regularizer.parameters()}
        groups: list[dict[str, Any]] = [{"params": [p for p in self.parameters() if id(p) not in own]}]
        for regularizer in self._terms().values():
            if params := list(regularizer.parameters()):
                groups.append({"params": params, **regularizer.param_group()})
        if self.optimizer is not None:
            return self.optimizer(groups)
        return torch.optim.Adam(groups, lr=self.lr, fused=fused(self))

    def _terms(self) -> dict[str, Regularizer]:
        return {name: module for name, module in self.regularizers.items() if isinstance(module, Regularizer)}

    def _attach(self, dataset_size: int | None = None) -> None:
        self.dataset_size = self.dataset_size if dataset_size is None else dataset_size
        for term in self._terms().values():
            term.attach(self)

    def _label_readers(self) -> list[str]:
        return [name for name, term in self._terms().items() if term.supervised or term.reads_labels]

    def _logged_loss(self, batch: AnyBatch, stage: str) -> Tensor:
        batch = self.receive(batch)
        terms = self.terms(batch)
        loss = torch.stack([term.loss for term in terms.values()]).sum()
        values = {"loss": loss} | {name: term.loss for name, term in terms.items()}
        details = {f"{name}/{key}": value for name, term in terms.items() for key, value in term.logs.items()}
        if stage == "train":
            self.log_training(values, details, len(batch.x))
            return loss
        if readers := self._label_readers():
            values["unsupervised"] = loss - torch.stack([terms[name].loss for name in readers]).sum()
        self.log_evaluation(stage, values | details, len(batch.x))
        return loss


def _rows(batch: Batch) -> dict[bool, Tensor]:
    """Images that terms read, by whether they are supervised: labelled ones are for those alone."""
    # Indices, found on the host: how many rows a mask picks is nothing that a compiler could know.
    masks = {False: ~batch.labelled, True: batch.labelled}
    return {key: indices(mask, batch.x.device) for key, mask in masks.items()}


def _part(batch: Batch, index: Tensor, labelled: bool) -> Batch:
    """The rows of `_rows`; the batch's own mask is on the host, where indices on the device pick nothing."""
    return Batch(batch.x[index], batch.y[index], torch.full((len(index),), labelled))
