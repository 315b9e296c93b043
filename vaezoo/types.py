"""Types that flow through a VAE: batches, posteriors, forward passes and loss terms."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from typing_extensions import Self

IMAGE_KEYS = ("x", "image", "images", "img")
LABEL_KEYS = ("y", "label", "labels", "target", "targets")


class Batch(NamedTuple):
    """Images with their labels.

    Attributes:
        x: Images in [0, 1], (B, C, H, W); bytes until they reach the device.
        y: Labels, (B, K); NaN if unknown. K is 0 if the data has no labels.
        labelled: Mask of labelled rows, (B,) bool. It may stay on the host: indexing with a host mask needs no device
            sync.
    """

    x: Tensor
    y: Tensor
    labelled: Tensor

    @classmethod
    def of(cls, batch: "AnyBatch") -> "Batch":
        """Convert whatever a loader yields to a `Batch`; a `Batch` is returned unchanged.

        Args:
            batch: Images; (images, labels); or a mapping such as {"image": …, "label": …}. Labels are (B,) or (B, K):
                class indices or numbers, NaN if unknown. A row is labelled if any of its labels is known.
        """
        if isinstance(batch, Batch):
            return batch
        images, labels = _parts(batch)
        if not isinstance(images, Tensor):
            raise TypeError(f"images must be a tensor, not a {type(images).__name__}: {_FORMS}")
        if labels is None:
            return cls.unlabelled(images)
        if not isinstance(labels, Tensor) or labels.ndim not in (1, 2) or len(labels) != len(images):
            found = tuple(labels.shape) if isinstance(labels, Tensor) else f"a {type(labels).__name__}"
            raise ValueError(f"labels of {len(images)} images must be a tensor (B,) or (B, K), not {found}")
        y = labels if labels.ndim == 2 else labels[:, None]
        if not y.is_floating_point():  # class indices, all known: the mask needs no look at the device
            return cls(images, y.float(), torch.ones(len(y), dtype=torch.bool))
        return cls(images, y.float() if y.dtype == torch.float64 else y, ~y.isnan().all(1))

    @classmethod
    def unlabelled(cls, images: Tensor) -> "Batch":
        """Images without labels."""
        y = torch.empty(len(images), 0, device=images.device)
        return cls(images, y, torch.zeros(len(images), dtype=torch.bool))

    def at(self, rows: Tensor) -> "Batch":
        """The rows of a mask, or at indices; either lies where `labelled` does."""
        index = indices(rows, rows.device) if rows.dtype == torch.bool else rows
        moved = index.to(self.x.device, non_blocking=True)
        return Batch(self.x[moved], self.y[moved], self.labelled[index])

    def to(self, device: torch.device) -> "Batch":
        """Move images and labels to a device; the mask stays where it is."""
        return Batch(self.x.to(device, non_blocking=True), self.y.to(device, non_blocking=True), self.labelled)

    def floats(self) -> "Batch":
        """Convert bytes to floats in [0, 1]; floats stay unchanged."""
        if self.x.is_floating_point():
            return self
        if self.x.dtype != torch.uint8:
            raise TypeError(f"images are {self.x.dtype}: give floats in [0, 1], or bytes (torch.uint8) from 0 to 255")
        return self._replace(x=from_bytes(self.x))

    def twice(self) -> "Batch":
        """All images without labels, followed by the same images with labels."""
        unknown, stream = torch.full_like(self.y, torch.nan), torch.zeros_like(self.labelled)
        return Batch(torch.cat([self.x, self.x]), torch.cat([unknown, self.y]), torch.cat([stream, self.labelled]))


AnyBatch = Batch | Tensor | Sequence[Any] | Mapping[str, Any]
"""What loaders yield: `Batch.of` makes a `Batch` of it."""

_FORMS = (
    "a batch is images, (images, labels), a vaezoo.Batch, or a mapping with images at one of "
    f"{', '.join(IMAGE_KEYS)} and labels, if any, at one of {', '.join(LABEL_KEYS)}"
)


def indices(mask: Tensor, device: torch.device) -> Tensor:
    """Rows that a mask picks, (N,): to index by a host's mask itself, or by its indices, would wait for the device."""
    return mask.nonzero()[:, 0].to(device, non_blocking=True)


def from_bytes(x: Tensor) -> Tensor:
    """Values from 0 to 255 as floats in [0, 1]."""
    return x.float().mul_(1 / 255)  # faster than a division, and 255 still becomes 1 exactly


def _parts(batch: Any) -> tuple[Any, Any]:
    """Images and labels; None if there are no labels."""
    if isinstance(batch, Mapping):
        images, labels = (next((batch[key] for key in keys if key in batch), None) for keys in (IMAGE_KEYS, LABEL_KEYS))
        if images is None:
            raise ValueError(f"a batch with the keys {', '.join(map(str, batch))} holds no images: {_FORMS}")
        return images, labels
    if isinstance(batch, (tuple, list)):
        if len(batch) not in (1, 2):
            raise ValueError(f"a batch of {len(batch)} parts: {_FORMS}")
        return batch[0], batch[1] if len(batch) == 2 else None
    return batch, None


class Posterior(Protocol):
    """Posterior q(z|x) of one latent group for a batch of B images."""

    @property
    def max_nats(self) -> float:
        """Largest possible KL per image (infinite for a Gaussian)."""

    def rsample(self) -> Tensor:
        """Reparametrised sample, (B, D)."""

    def mode(self) -> Tensor:
        """Most likely value, decoded in evaluation, (B, D)."""

    def code(self) -> Tensor:
        """Deterministic representation for metrics, (B, D)."""

    def kl(self) -> Tensor:
        """KL from the prior per unit, in nats, (B, units)."""

    def at(self, rows: Tensor) -> Self:
        """The posteriors of the rows of a mask, or at indices."""


def _no_encoder(x: Tensor, y: Tensor) -> dict[str, Posterior]:
    raise TypeError("this pass has no encoder for further images")


class Forward(NamedTuple):
    """One pass through a VAE.

    Attributes:
        posterior: q(z|x) of each latent group, by name.
        sample: Decoded latents, (B, D) per group.
        reconstruction: Decoder output before its sigmoid, (B, C, H, W).
        labels: Logits of each decoded label, (B, classes).
        encode: Function that encodes further images and labels, for terms that compare views.
    """

    posterior: dict[str, Posterior]
    sample: dict[str, Tensor]
    reconstruction: Tensor
    labels: tuple[Tensor, ...] = ()
    encode: Callable[[Tensor, Tensor], dict[str, Posterior]] = _no_encoder

    def at(self, rows: Tensor) -> "Forward":
        """The rows of a mask, or at indices."""
        posterior = {name: q.at(rows) for name, q in self.posterior.items()}
        sample = {name: z[rows] for name, z in self.sample.items()}
        labels = tuple(logits[rows] for logits in self.labels)
        return Forward(posterior, sample, self.reconstruction[rows], labels, self.encode)


class Term(NamedTuple):
    """One term of the training loss.

    Attributes:
        loss: Weighted scalar in nats per example. A model's terms sum to its loss.
        logs: Unweighted scalars to log.
    """

    loss: Tensor
    logs: dict[str, Tensor]
