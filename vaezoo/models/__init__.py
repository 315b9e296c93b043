"""One file a paper: presets of `vaezoo.models.base.VAE`."""

from vaezoo.models.annealed_vae import AnnealedVAE
from vaezoo.models.base import VAE
from vaezoo.models.beta_vae import BetaVAE
from vaezoo.models.dip_vae import DIPVAE
from vaezoo.models.factor_vae import FactorVAE
from vaezoo.models.joint_vae import JointVAE
from vaezoo.models.larvae import LaRVAE
from vaezoo.models.parted_vae import PartedVAE
from vaezoo.models.tc_vae import TCVAE
from vaezoo.models.wela_vae import WeLaVAE

__all__ = [
    "DIPVAE",
    "TCVAE",
    "VAE",
    "AnnealedVAE",
    "BetaVAE",
    "FactorVAE",
    "JointVAE",
    "LaRVAE",
    "PartedVAE",
    "WeLaVAE",
]
