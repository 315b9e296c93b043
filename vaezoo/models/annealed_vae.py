"""β-VAE with controlled capacity."""

from collections.abc import Mapping

from typing_extensions import Unpack

from vaezoo.models.base import VAE, VAEOptions
from vaezoo.nn.latents import GaussianLatent
from vaezoo.nn.networks import Shape
from vaezoo.regularizers import Capacity, Regularizer


class AnnealedVAE(VAE):
    """β-VAE with controlled capacity (Burgess et al., 2018, Eq. 8): the KL follows a rising target.

    Args:
        image_shape: Channels, height and width.
        latent_dim: Number of latent dimensions.
        gamma: Weight of the gap between KL and capacity.
        max_nats: Capacity at the end of the ramp.
        steps: Training batches over which the capacity rises.
        regularizers: Extra terms by name. A term named "capacity_z" replaces the built-in one.
        options: `network`, `likelihood`, `likelihood_variance`, `lr` and `optimizer`, as in `VAE`.
    """

    paper = "Burgess et al., 2018"

    def __init__(
        self,
        image_shape: Shape,
        latent_dim: int = 10,
        gamma: float = 1000.0,
        max_nats: float = 25.0,
        steps: int = 100_000,
        regularizers: Mapping[str, Regularizer] | None = None,
        **options: Unpack[VAEOptions],
    ) -> None:
        super().__init__(
            image_shape,
            latents={"z": GaussianLatent(latent_dim)},
            regularizers={"capacity_z": Capacity("z", gamma, max_nats, steps), **(regularizers or {})},
            **options,
        )
