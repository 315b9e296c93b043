"""β-VAE."""

from collections.abc import Mapping

from typing_extensions import Unpack

from vaezoo.models.base import VAE, VAEOptions
from vaezoo.nn.latents import GaussianLatent
from vaezoo.nn.networks import Shape
from vaezoo.regularizers import KL, Regularizer


class BetaVAE(VAE):
    """β-VAE (Higgins et al., 2017): a KL weight above 1 pushes the latents towards independence.

    Args:
        image_shape: Channels, height and width.
        latent_dim: Number of latent dimensions.
        beta: Weight of the KL.
        regularizers: Extra terms by name. A term named "kl" replaces the built-in one.
        options: `network`, `likelihood`, `likelihood_variance`, `lr` and `optimizer`, as in `VAE`.
    """

    paper = "Higgins et al., 2017"

    def __init__(
        self,
        image_shape: Shape,
        latent_dim: int = 10,
        beta: float = 4.0,
        regularizers: Mapping[str, Regularizer] | None = None,
        **options: Unpack[VAEOptions],
    ) -> None:
        super().__init__(
            image_shape,
            latents={"z": GaussianLatent(latent_dim)},
            regularizers={"kl": KL("z", beta), **(regularizers or {})},
            **options,
        )
