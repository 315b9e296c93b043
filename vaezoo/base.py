"""The base of every model: an encoder, latent groups, a decoder and an ordered dictionary of regularizers."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypedDict

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from vaezoo.functional import Likelihood, full_precision, reconstruction
from vaezoo.latents import GaussianLatent, LatentGroup
from vaezoo.networks import BurgessNetwork, Network, Shape
from vaezoo.regularizers import KL, Regularizer
from vaezoo.specs import Specified, plain
from vaezoo.types import Batch, Forward, Latent, Term


class _LogOptions(TypedDict):
    batch_size: int
    sync_dist: bool


class VAEOptions(TypedDict, total=False):
    """Arguments that every model passes on to `VAE`."""

    network: Network | None
    likelihood: Likelihood
    lr: float


class VAE(Specified, LightningModule):
    """Variational autoencoder (Kingma & Welling, 2014); with other latents and regularizers, any model of the zoo.

    A paper is a subclass that names its latents and its regularizers.

    Args:
        image_shape: Channels, height and width.
        latents: Latent groups by name; 10 Gaussian dimensions called "z" where None.
        regularizers: Terms beside the reconstruction, by name; plain KL on "z" where None.
        network: Encoder and decoder; `BurgessNetwork` where None.
        likelihood: Distribution of pixels given latents. The decoder's output goes through a sigmoid for all three.
        lr: Adam's learning rate.
    """

    paper: ClassVar[str] = "Kingma & Welling, 2014"
    """Paper that the model comes from, which tracked runs are tagged with; a subclass names its own."""

    step: Tensor
    regularizers: nn.ModuleDict

    def __init__(
        self,
        image_shape: Shape,
        latents: Mapping[str, LatentGroup] | None = None,
        regularizers: Mapping[str, Regularizer] | None = None,
        network: Network | None = None,
        likelihood: Likelihood = "bernoulli",
        lr: float = 5e-4,
    ) -> None:
        super().__init__()
        self.image_shape: Shape = _shape(image_shape)
        groups = {"z": GaussianLatent()} if latents is None else latents
        self.latents = {name: LatentGroup.build(group) for name, group in groups.items()}
        network = BurgessNetwork() if network is None else Network.build(network)
        self.encoder = network.encoder(self.image_shape)
        self.heads = nn.ModuleDict({name: group.head(network.features) for name, group in self.latents.items()})
        self.decoder = network.decoder(self.image_shape, sum(group.size for group in self.latents.values()))
        self.likelihood, self.lr = likelihood, lr
        # Counts training batches; Lightning's global_step counts optimizer steps.
        self.register_buffer("step", torch.zeros((), dtype=torch.long))
        self.regularizers = nn.ModuleDict()
        self.save_hyperparameters(self.spec["init_args"])
        for name, regularizer in ({"kl": KL()} if regularizers is None else regularizers).items():
            self.regularizers[name] = Regularizer.build(regularizer)

    def add_regularizer(self, name: str, regularizer: Regularizer) -> None:
        """Add or replace a term; the checkpoint remembers it, so loading needs no mention of it."""
        self.regularizers[name] = regularizer.to(self.device)
        self.hparams["regularizers"] = {**(self.hparams.get("regularizers") or {}), name: plain(regularizer, name)}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Note which class wrote the checkpoint, for `vaezoo.load`."""
        checkpoint["model_class"] = self.spec["class_path"]

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Build the regularizers that were added to the model that wrote the checkpoint."""
        saved = checkpoint.get(self.CHECKPOINT_HYPER_PARAMS_KEY, {}).get("regularizers") or {}
        for name, spec in saved.items():
            if name not in self.regularizers:
                self.add_regularizer(name, Regularizer.build(spec))

    def encode(self, x: Tensor) -> dict[str, Latent]:
        """Posteriors of all latent groups for images (B, C, H, W)."""
        features = self.encoder(x)
        return {name: head(features) for name, head in self.heads.items()}

    def decode(self, sample: Mapping[str, Tensor]) -> Tensor:
        """Logits of images from latents by group, (B, C, H, W)."""
        logits: Tensor = self.decoder(torch.cat([sample[name] for name in self.latents], dim=1))
        return full_precision(logits)

    def forward(self, batch: Batch) -> Forward:
        """Encode, sample, let regularizers change the sample, decode; in evaluation the sample is the mode."""
        posterior = self.encode(batch.x)
        sample = {name: q.rsample() if self.training else q.mode() for name, q in posterior.items()}
        if self.training:
            for regularizer in self._terms().values():
                sample = regularizer.on_sample(sample, batch)
        return Forward(posterior, sample, self.decode(sample))

    def terms(self, batch: Batch) -> dict[str, Term]:
        """Named summands of the loss: "recon" and one entry a regularizer."""
        parts = self._parts(self(batch), batch)
        with torch.autocast(batch.x.device.type, enabled=False):  # loss maths stays in float32
            terms = {"recon": self.reconstruction_term(*parts[False])}
            for name, regularizer in self._terms().items():
                terms[name] = regularizer(*parts[regularizer.supervised], self.step)
        return terms

    def reconstruction_term(self, out: Forward, batch: Batch) -> Term:
        """−log p(x|z), the batch mean."""
        return Term(reconstruction(out.reconstruction, full_precision(batch.x), self.likelihood).mean(), {})

    def training_step(self, batch: Batch, batch_idx: int = 0) -> Tensor:
        """Loss of one batch, which counts as one step; needs no Trainer."""
        loss = self._log_terms("train", batch)
        self.step += 1
        return loss

    def validation_step(self, batch: Batch, batch_idx: int = 0) -> Tensor:
        """Loss in evaluation."""
        return self._log_terms("val", batch)

    def test_step(self, batch: Batch, batch_idx: int = 0) -> Tensor:
        """Loss in evaluation."""
        return self._log_terms("test", batch)

    def predict_step(self, batch: Batch, batch_idx: int = 0) -> Tensor:
        """Codes of a batch."""
        return self.represent(batch.x)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam; regularizers with parameters of their own get their own options."""
        own = {id(p) for regularizer in self._terms().values() for p in regularizer.parameters()}
        groups: list[dict[str, Any]] = [{"params": [p for p in self.parameters() if id(p) not in own]}]
        for regularizer in self._terms().values():
            if params := list(regularizer.parameters()):
                groups.append({"params": params, **regularizer.param_group()})
        return torch.optim.Adam(groups, lr=self.lr)

    @torch.no_grad()
    def unit_nats(self, x: Tensor) -> dict[str, Tensor]:
        """KL of each latent unit in nats, the mean over images: what ranks units by how much they carry."""
        return {name: q.kl().mean(0) for name, q in self.encode(x).items()}

    @torch.no_grad()
    def represent(self, x: Tensor) -> Tensor:
        """Deterministic codes, the latent groups side by side, (B, D)."""
        return torch.cat([q.code() for q in self.encode(x).values()], dim=1)

    @torch.no_grad()
    def reconstruct(self, x: Tensor) -> Tensor:
        """Images decoded from the posteriors' modes, in [0, 1], (B, C, H, W)."""
        return self.decode({name: q.mode() for name, q in self.encode(x).items()}).sigmoid()

    @torch.no_grad()
    def sample(self, n: int) -> Tensor:
        """Images decoded from samples of the prior, in [0, 1], (n, C, H, W)."""
        like = next(self.decoder.parameters())
        return self.decode({name: group.prior(n, like) for name, group in self.latents.items()}).sigmoid()

    @torch.no_grad()
    def traverse(
        self,
        x: Tensor,
        latent: str | None = None,
        units: Sequence[int] | None = None,
        steps: int = 8,
        span: tuple[float, float] = (-2.0, 2.0),
    ) -> list[Tensor]:
        """Decode images while one latent unit at a time takes other values.

        Args:
            x: Images to walk from, (B, C, H, W).
            latent: Latent group; the first where None.
            units: Dimensions, or variables of a discrete group; all where None.
            steps: Number of values of a continuous unit; a discrete one takes each of its classes.
            span: First and last value of a continuous unit.

        Returns:
            One tensor a unit, in [0, 1], (B, S, C, H, W).
        """
        name = next(iter(self.latents)) if latent is None else latent
        if name not in self.latents:
            raise ValueError(f"latent {name!r} is not one of {', '.join(self.latents)}")
        group, codes = self.latents[name], {key: q.mode() for key, q in self.encode(x).items()}
        values = torch.linspace(*span, steps)
        return [self._decode_walk(codes, name, group.walk(codes[name], u, values)) for u in units or range(group.units)]

    def _decode_walk(self, codes: Mapping[str, Tensor], name: str, walked: Tensor) -> Tensor:
        batch, steps, _ = walked.shape
        sample = {key: code.repeat_interleave(steps, 0) for key, code in codes.items()}
        images = self.decode(sample | {name: walked.flatten(0, 1)}).sigmoid()
        return images.reshape(batch, steps, *self.image_shape)

    def _terms(self) -> dict[str, Regularizer]:
        return {name: module for name, module in self.regularizers.items() if isinstance(module, Regularizer)}

    def _parts(self, out: Forward, batch: Batch) -> dict[bool, tuple[Forward, Batch]]:
        """What terms read, by whether they are supervised: in training, labelled images are for those alone."""
        whole = out, batch
        if not self.training or not any(term.supervised for term in self._terms().values()):
            return {False: whole, True: whole}
        if batch.labelled.all():
            raise ValueError(
                "every image of the batch is labelled, none is left for the unsupervised terms: "
                "let labelled images come beside the others with data.labelled_batch_size above 0"
            )
        rows = {False: ~batch.labelled, True: batch.labelled}
        return {supervised: (out.at(mask), batch.at(mask)) for supervised, mask in rows.items()}

    def _log_terms(self, stage: str, batch: Batch) -> Tensor:
        terms = self.terms(batch)
        loss = torch.stack([term.loss for term in terms.values()]).sum()
        if self._trainer is not None:
            values = {"loss": loss} | {name: term.loss for name, term in terms.items()}
            details = {f"{name}/{key}": value for name, term in terms.items() for key, value in term.logs.items()}
            options: _LogOptions = {"batch_size": len(batch.x), "sync_dist": stage != "train"}
            self.log_dict({f"{stage}/{k}": v.detach() for k, v in values.items()}, prog_bar=stage == "train", **options)
            self.log_dict({f"{stage}/{k}": v.detach() for k, v in details.items()}, **options)
        return loss


def _shape(image_shape: Sequence[int]) -> Shape:
    if len(image_shape) != 3 or min(image_shape) < 1:
        raise ValueError(f"image_shape must be channels, height and width, all positive, not {tuple(image_shape)}")
    channels, height, width = image_shape
    return channels, height, width
