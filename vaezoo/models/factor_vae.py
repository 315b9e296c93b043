"""FactorVAE."""

from collections.abc import Mapping

from typing_extensions import Unpack

from vaezoo.models.base import VAE, VAEOptions
from vaezoo.nn.latents import GaussianLatent
from vaezoo.nn.networks import Shape
from vaezoo.regularizers import KL, DiscriminatedTotalCorrelation, Regularizer


class FactorVAE(VAE):
    """FactorVAE (Kim & Mnih, 2018, Eq. 2): ELBO plus γ times the total correlation, estimated by a discriminator.

    Args:
        image_shape: Channels, height and width.
        latent_dim: Number of latent dimensions.
        gamma: Weight of the total correlation.
        discriminator_width: Units of each of the discriminator's six hidden layers.
        discriminator_lr: Learning rate of the discriminator.
        regularizers: Extra terms by name. "kl" and "tc" replace the built-in ones.
        options: `network`, `likelihood`, `likelihood_variance`, `lr` and `optimizer`, as in `VAE`.
    """

    paper = "Kim & Mnih, 2018"

    def __init__(
        self,
        image_shape: Shape,
        latent_dim: int = 10,
        gamma: float = 35.0,
        discriminator_width: int = 1000,
        discriminator_lr: float = 1e-4,
        regularizers: Mapping[str, Regularizer] | None = None,
        **options: Unpack[VAEOptions],
    ) -> None:
        tc = DiscriminatedTotalCorrelation("z", gamma, discriminator_width, lr=discriminator_lr, dim=latent_dim)
        super().__init__(
            image_shape,
            latents={"z": GaussianLatent(latent_dim)},
            regularizers={"kl": KL("z"), "tc": tc, **(regularizers or {})},
            **options,
        )
