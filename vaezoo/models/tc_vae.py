"""β-TCVAE."""

from collections.abc import Mapping

from typing_extensions import Unpack

from vaezoo.functional import Estimator
from vaezoo.models.base import VAE, VAEOptions
from vaezoo.nn.latents import GaussianLatent
from vaezoo.nn.networks import Shape
from vaezoo.regularizers import KL, Regularizer, TotalCorrelation


class TCVAE(VAE):
    """β-TCVAE (Chen et al., 2018, Eq. 4 at α = γ = 1): β weights only the total-correlation part of the KL.

    MI + β·TC + dimension-wise KL is KL + (β − 1)·TC, with the KL in closed form.

    Args:
        image_shape: Channels, height and width.
        latent_dim: Number of latent dimensions.
        beta: Weight of the total correlation; 1 is the plain VAE.
        dataset_size: Number of training images, for the estimator. Defaults to the size of the data.
        estimator: "mws", "mss" or "batch", as in `TotalCorrelation`.
        regularizers: Extra terms by name. "kl" and "tc" replace the built-in ones.
        options: `network`, `likelihood`, `likelihood_variance`, `lr` and `optimizer`, as in `VAE`.
    """

    paper = "Chen et al., 2018"

    def __init__(
        self,
        image_shape: Shape,
        latent_dim: int = 10,
        beta: float = 6.0,
        dataset_size: int | None = None,
        estimator: Estimator = "mws",
        regularizers: Mapping[str, Regularizer] | None = None,
        **options: Unpack[VAEOptions],
    ) -> None:
        tc = TotalCorrelation("z", beta - 1, dataset_size, estimator)
        super().__init__(
            image_shape,
            latents={"z": GaussianLatent(latent_dim)},
            regularizers={"kl": KL("z"), "tc": tc, **(regularizers or {})},
            **options,
        )
