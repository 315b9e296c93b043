"""Encoder, latent groups and decoder: everything you use after training."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from vaezoo.functional import full_precision
from vaezoo.nn.latents import GaussianLatent, LatentGroup
from vaezoo.nn.networks import BurgessNetwork, Network, Shape
from vaezoo.specs import Specified
from vaezoo.types import Batch, Posterior


class Autoencoder(Specified, nn.Module):
    """Encode images to posteriors, decode latents to images, sample and traverse.

    A plain `nn.Module` without Lightning. `VAE` adds training.

    Args:
        image_shape: Channels, height and width.
        latents: Latent groups by name. Defaults to 10 Gaussian dimensions named "z".
        network: Encoder and decoder. Defaults to `BurgessNetwork`.
    """

    def __init__(
        self,
        image_shape: Shape,
        latents: Mapping[str, LatentGroup] | None = None,
        network: Network | None = None,
    ) -> None:
        super().__init__()
        self.image_shape: Shape = _shape(image_shape)
        groups = {"z": GaussianLatent()} if latents is None else latents
        self.latents = {name: LatentGroup.build(group) for name, group in groups.items()}
        if not self.decoded:
            raise ValueError("the decoder has no latents to read: give the model a latent dimension or class")
        self.network = network = BurgessNetwork() if network is None else Network.build(network)
        self.encoder = network.encoder(self.image_shape)
        self.heads = nn.ModuleDict({name: group.head(network.features) for name, group in self.latents.items()})
        network.initialise(self.heads)
        self.decoder = network.decoder(self.image_shape, sum(group.size for group in self.decoded.values()))

    @property
    def decoded(self) -> dict[str, LatentGroup]:
        """Latent groups that the decoder reads, in order. Other groups are not part of the code."""
        return {name: group for name, group in self.latents.items() if group.decoded}

    @property
    def unit_names(self) -> list[str]:
        """Names of the columns of a code: z_0, z_1, …; c_0_2 for class 2 of the discrete latent 0."""
        names: list[str] = []
        for name, group in self.decoded.items():
            if group.classes:
                names += [f"{name}_{i}_{k}" for i, classes in enumerate(group.classes) for k in range(classes)]
            else:
                names += [f"{name}_{i}" for i in range(group.size)]
        return names

    def encode(self, x: Tensor, y: Tensor | None = None) -> dict[str, Posterior]:
        """Posteriors of all latent groups for images (B, C, H, W). Only some models read labels (B, K)."""
        check_images(x, self.image_shape)
        features = self.encoder(x)
        return {name: head(features) for name, head in self.heads.items()}

    def infer(self, x: Tensor, y: Tensor | None = None) -> tuple[dict[str, Posterior], dict[str, Tensor]]:
        """Posteriors of images, and a sample of them; the mode in evaluation."""
        posterior = self.encode(x, y)
        return posterior, {name: q.rsample() if self.training else q.mode() for name, q in posterior.items()}

    def decode(self, sample: Mapping[str, Tensor]) -> Tensor:
        """Logits of images from latents by group, (B, C, H, W)."""
        logits: Tensor = self.decoder(self.beside(sample))
        return full_precision(logits)

    def beside(self, sample: Mapping[str, Tensor]) -> Tensor:
        """Latents by group, concatenated as the decoder reads them, (B, D).

        Raises:
            ValueError: A group is missing or has the wrong number of dimensions.
        """
        for name, group in self.decoded.items():
            if name not in sample:
                raise ValueError(f"latents {name!r} are missing: give {', '.join(self.decoded)}")
            if sample[name].ndim != 2 or sample[name].shape[1] != group.size:
                raise ValueError(
                    f"latents {name!r} are {tuple(sample[name].shape)}, the model's are (B, {group.size}): give as many"
                )
        return torch.cat([sample[name] for name in self.decoded], dim=1)

    def decode_with_labels(self, sample: Mapping[str, Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Logits of images, and of each label if the model decodes labels."""
        return self.decode(sample), ()

    @torch.no_grad()
    def unit_nats(self, x: Tensor, y: Tensor | None = None) -> dict[str, Tensor]:
        """KL of each latent unit in nats, averaged over images. Ranks units by information."""
        return {name: q.kl().mean(0) for name, q in self.encode(x, y).items()}

    @torch.no_grad()
    def represent(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Deterministic codes: the decoded latent groups, concatenated, (B, D)."""
        return self.codes_of(self.encode(x, y))

    def codes_of(self, posterior: Mapping[str, Posterior]) -> Tensor:
        """Deterministic codes from posteriors, (B, D)."""
        return torch.cat([posterior[name].code() for name in self.decoded], dim=1)

    def codes(self, batch: Batch) -> Tensor:
        """Deterministic codes of a batch, for metrics, (B, D). Models that encode labels read them from the batch."""
        return self.represent(batch.x, batch.y)

    @torch.no_grad()
    def reconstruct(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Images decoded from the posterior modes, in [0, 1], (B, C, H, W)."""
        return self.decode({name: q.mode() for name, q in self.encode(x, y).items()}).sigmoid()

    @torch.no_grad()
    def sample(self, n: int) -> Tensor:
        """Images decoded from samples of the prior, in [0, 1], (n, C, H, W)."""
        return self.decode(self.draw(n)).sigmoid()

    def draw(self, n: int) -> dict[str, Tensor]:
        """Sample latents from the prior, (n, D) per group."""
        like = next(self.decoder.parameters())
        return {name: group.prior(n, like) for name, group in self.latents.items()}

    def centre(self) -> dict[str, Tensor]:
        """The centre of the prior, (1, D) per group."""
        like = next(self.decoder.parameters())
        return {name: group.centre(like) for name, group in self.latents.items()}

    @torch.no_grad()
    def traverse(
        self,
        x: Tensor | None = None,
        latent: str | None = None,
        units: Sequence[int] | None = None,
        steps: int = 8,
        span: tuple[float, float] = (-2.0, 2.0),
        y: Tensor | None = None,
    ) -> list[Tensor]:
        """Decode images while varying one latent unit at a time.

        Args:
            x: Images to start from, (B, C, H, W). Defaults to the centre of the prior.
            latent: Latent group. Defaults to the first.
            units: Dimensions, or variables of a discrete group. Defaults to all.
            steps: Number of values of a continuous unit. A discrete unit takes each of its classes.
            span: First and last value of a continuous unit.
            y: Labels of the images, for models that encode them, (B, K).

        Returns:
            One tensor per unit, in [0, 1], (B, S, C, H, W).
        """
        name = next(iter(self.latents)) if latent is None else latent
        if name not in self.latents:
            raise ValueError(f"latent {name!r} is not one of {', '.join(self.latents)}")
        codes = self.centre() if x is None else {key: q.mode() for key, q in self.encode(x, y).items()}
        values, units = torch.linspace(*span, steps), units or range(self.latents[name].units)
        if not all(0 <= unit < self.latents[name].units for unit in units):
            raise ValueError(f"units {list(units)}: latent {name!r} has units 0 to {self.latents[name].units - 1}")
        return [self.decode_walk(codes, *self.walk(codes, name, unit, values)) for unit in units]

    def walkable(self) -> list[str]:
        """Latent groups you can traverse: those that are decoded."""
        return list(self.decoded)

    def walk(self, codes: Mapping[str, Tensor], name: str, unit: int, values: Tensor) -> tuple[str, Tensor]:
        """The group that a traversal changes, and its values, (B, S, D)."""
        return name, self.latents[name].walk(codes[name], unit, values)

    @torch.no_grad()
    def decode_walk(self, codes: Mapping[str, Tensor], name: str, walked: Tensor) -> Tensor:
        """Decode codes (B, D) with one group replaced by values (B, S, D), in [0, 1], (B, S, C, H, W)."""
        batch, steps, _ = walked.shape
        sample = {key: code.repeat_interleave(steps, 0) for key, code in codes.items()}
        images = self.decode(sample | {name: walked.flatten(0, 1)}).sigmoid()
        return images.reshape(batch, steps, *self.image_shape)


def check_images(x: Tensor, image_shape: Shape) -> None:
    """Raise unless images have the model's shape and type. Reads no pixel, so it is free in a compiled step."""
    if x.shape[1:] != image_shape:
        one = "; a single image needs a batch dimension, x[None]" if x.shape == image_shape else ""
        raise ValueError(
            f"images are {tuple(x.shape[1:])}, the model's image_shape (channels, height, width) is {image_shape}: "
            f"resize the images, or build the model for them{one}"
        )
    if not x.is_floating_point():
        raise ValueError(f"images are {x.dtype}, the model reads floats in [0, 1]: give x.float() / 255 for bytes")


def _shape(image_shape: Sequence[int]) -> Shape:
    if len(image_shape) != 3 or min(image_shape) < 1:
        raise ValueError(f"image_shape must be channels, height and width, all positive, not {tuple(image_shape)}")
    channels, height, width = image_shape
    return channels, height, width
