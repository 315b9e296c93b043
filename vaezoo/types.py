"""The shapes that flow through a VAE: what comes in, what the model makes of it, what it costs."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from torch import Tensor
from typing_extensions import Self


class Batch(NamedTuple):
    """Images with their labels.

    Attributes:
        x: Images in [0, 1], (B, C, H, W).
        y: Labels, (B, K); rows that are not labelled hold NaN.
        labelled: Which rows carry a label, (B,) bool. It may stay on the host: picking rows by a host mask
            needs no device synchronisation.
    """

    x: Tensor
    y: Tensor
    labelled: Tensor

    def at(self, rows: Tensor) -> "Batch":
        """The rows of a mask, or at indices."""
        return Batch(self.x[rows], self.y[rows], self.labelled[rows])


class Posterior(Protocol):
    """Posterior q(z|x) of one group of latents for a batch of B images."""

    @property
    def max_nats(self) -> float:
        """Largest KL that the group can carry for one image (infinite for a Gaussian)."""

    def rsample(self) -> Tensor:
        """Reparametrised sample, (B, D)."""

    def mode(self) -> Tensor:
        """Most likely value, used for decoding in evaluation, (B, D)."""

    def code(self) -> Tensor:
        """Deterministic representation that metrics read, (B, D)."""

    def kl(self) -> Tensor:
        """KL from the prior in nats for each unit, (B, units)."""

    def at(self, rows: Tensor) -> Self:
        """The posteriors of the rows of a mask, or at indices."""


def _no_encoder(x: Tensor, y: Tensor) -> dict[str, Posterior]:
    raise TypeError("this pass has no encoder for further images")


class Forward(NamedTuple):
    """One pass through a VAE.

    Attributes:
        posterior: q(z|x) of each latent group, by name.
        sample: What was decoded, (B, D) for each group.
        reconstruction: Decoder output before its sigmoid, (B, C, H, W).
        labels: Logits of each label that the model decodes beside the image, (B, classes).
        encode: Posteriors of further images, with their labels, for terms that compare views.
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
    """One summand of the training loss.

    Attributes:
        loss: Weighted scalar in nats an example; the terms of a model sum to its loss.
        logs: Unweighted scalars to log beside it.
    """

    loss: Tensor
    logs: dict[str, Tensor]
