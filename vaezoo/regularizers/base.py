"""The `Regularizer` base class: a module that the VAE calls at fixed points."""

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor, nn

from vaezoo.functional import Likelihood
from vaezoo.nn.latents import Concrete, Gaussian, LatentGroup
from vaezoo.specs import Specified
from vaezoo.types import Batch, Forward, Posterior, Term


class Host(Protocol):
    """The model attributes that a term may read."""

    latents: dict[str, LatentGroup]
    likelihood: Likelihood
    likelihood_variance: float
    dataset_size: int | None
    """Number of training images; None before training."""


class Regularizer(Specified, nn.Module):
    """A named term of a VAE's loss. It may have state, a schedule and parameters.

    Subclasses implement `forward`. Override `on_sample` to change what is decoded, and `attach` to read from the model.
    Keep state that a resumed run needs in a buffer, a parameter or a function of `step`, never in an attribute that
    `forward` changes.
    """

    supervised: bool = False
    """Whether `forward` reads labels. In training, a model with such terms shows them the labelled images and shows
    every other term the rest."""
    reads_labels: bool = False
    """Whether training on images alone is an error, as it always is for supervised terms."""

    def attach(self, model: Host) -> None:
        """Fill in missing arguments from the model; given arguments win.

        Called when the term joins a model with complete latents, before parameters are loaded or optimised, and again
        once the number of training images is known.
        """

    def on_sample(self, sample: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        """Change what is decoded. Called between sampling and decoding, in training only."""
        return sample

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """Compute the weighted term and the values to log.

        Args:
            out: The model's pass over the batch.
            batch: The images and labels.
            step: Training batches seen so far, a scalar tensor.
        """
        raise NotImplementedError

    def param_group(self) -> dict[str, Any]:
        """Optimizer options for this module's parameters, such as `{"lr": 1e-4}`."""
        return {}


def gaussian(out: Forward, latent: str) -> Gaussian:
    """The Gaussian posterior of a latent group, for terms that need its mean and variance."""
    q = out.posterior[latent]
    if not isinstance(q, Gaussian):
        raise TypeError(f"latent {latent!r} is {type(q).__name__}; this term needs a Gaussian one")
    return q


def concrete(posterior: Mapping[str, Posterior], latent: str) -> Concrete:
    """The discrete posterior of a latent group, for terms that need its class probabilities."""
    q = posterior[latent]
    if not isinstance(q, Concrete):
        raise TypeError(f"latent {latent!r} is {type(q).__name__}; this term needs a discrete one")
    return q
