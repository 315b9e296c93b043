"""DIP-VAE I and II."""

from collections.abc import Mapping
from typing import Literal

from typing_extensions import Unpack

from vaezoo.models.base import VAE, VAEOptions
from vaezoo.nn.latents import GaussianLatent
from vaezoo.nn.networks import Shape
from vaezoo.regularizers import KL, CovarianceMatching, Regularizer


class DIPVAE(VAE):
    """DIP-VAE (Kumar et al., 2018): ELBO plus covariance matching, variant I (Eq. 6) or II (Eq. 7).

    Args:
        image_shape: Channels, height and width.
        latent_dim: Number of latent dimensions.
        variant: "i" or "ii".
        lambda_od: Off-diagonal weight.
        lambda_d: Diagonal weight. Defaults to the paper's multiple of lambda_od for 2D Shapes (10 for I, 1 for II).
        lambda_3: Weight of the third central moments. The paper uses 200 for II on 2D Shapes.
        momentum: Weight of the minibatch in the running covariance (footnote 4). 1 uses the minibatch alone.
        regularizers: Extra terms by name. "kl" and "covariance" replace the built-in ones.
        options: `network`, `likelihood`, `likelihood_variance`, `lr` and `optimizer`, as in `VAE`.
    """

    paper = "Kumar et al., 2018"

    def __init__(
        self,
        image_shape: Shape,
        latent_dim: int = 10,
        variant: Literal["i", "ii"] = "i",
        lambda_od: float = 10.0,
        lambda_d: float | None = None,
        lambda_3: float = 0.0,
        momentum: float = 1.0,
        regularizers: Mapping[str, Regularizer] | None = None,
        **options: Unpack[VAEOptions],
    ) -> None:
        lambda_d = lambda_od * (10 if variant == "i" else 1) if lambda_d is None else lambda_d
        covariance = CovarianceMatching("z", variant, lambda_od, lambda_d, lambda_3, momentum, latent_dim)
        super().__init__(
            image_shape,
            latents={"z": GaussianLatent(latent_dim)},
            regularizers={"kl": KL("z"), "covariance": covariance, **(regularizers or {})},
            **options,
        )
