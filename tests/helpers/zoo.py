"""One small instance of every model, for the tests that all models must pass."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Trainer
from torch import Tensor

from datamodules.loader import BatchLoader, Epochs
from vaezoo.models import DIPVAE, TCVAE, AnnealedVAE, BetaVAE, FactorVAE, JointVAE, LaRVAE, PartedVAE, WeLaVAE
from vaezoo.models.base import VAE
from vaezoo.nn.latents import ConcreteLatent, GaussianLatent
from vaezoo.nn.networks import ConvNetwork, DenseNetwork
from vaezoo.regularizers import KL, Capacity, CovarianceMatching, DiscriminatedTotalCorrelation, ViewAgreement
from vaezoo.types import Batch

SHAPE = (1, 16, 16)
NETWORK = DenseNetwork((32,), (32,))

MODELS: dict[str, Callable[[], VAE]] = {
    "VAE": lambda: VAE(SHAPE, network=NETWORK),
    "VAE with discrete latents": lambda: VAE(
        SHAPE,
        latents={"z": GaussianLatent(4), "c": ConcreteLatent([3, 2])},
        regularizers={"kl": KL("z"), "capacity_c": Capacity("c", 30.0, 5.0, 10)},
        network=NETWORK,
    ),
    "BetaVAE": lambda: BetaVAE(SHAPE, 4, beta=2.0, network=NETWORK),
    "JointVAE": lambda: JointVAE(SHAPE, 4, [3, 2], steps=10, network=NETWORK),
    "JointVAE with views": lambda: JointVAE(
        SHAPE,
        4,
        [3],
        steps=10,
        auxiliary=[5],
        network=NETWORK,
        regularizers={"views": ViewAgreement(["c", "aux"], 0.1)},
    ),
    "DIPVAE I": lambda: DIPVAE(SHAPE, 4, "i", network=NETWORK),
    "DIPVAE II": lambda: DIPVAE(SHAPE, 4, "ii", lambda_3=2.0, momentum=0.5, network=NETWORK),
    "TCVAE": lambda: TCVAE(SHAPE, 4, network=NETWORK),
    "FactorVAE": lambda: FactorVAE(SHAPE, 4, discriminator_width=16, network=NETWORK),
    "PartedVAE": lambda: PartedVAE(SHAPE, 4, 2, [3], steps=10, network=NETWORK),
    "PartedVAE of two variables": lambda: PartedVAE(
        SHAPE, 3, 1, [3, 2], [[0.2, 0.3, 0.5], [0.9, 0.1]], steps=10, network=NETWORK
    ),
    "AnnealedVAE": lambda: AnnealedVAE(SHAPE, 4, gamma=10.0, max_nats=5.0, steps=10, network=NETWORK),
    "LaRVAE": lambda: LaRVAE(SHAPE, 3, 2, network=NETWORK),
    "SS-FactorVAE": lambda: LaRVAE(
        SHAPE,
        3,
        2,
        tau=0.0,
        unsupervised={"kl": KL(), "tc": DiscriminatedTotalCorrelation(width=16)},
        network=NETWORK,
    ),
    "WeLaVAE": lambda: WeLaVAE(SHAPE, [3], dataset_size=100, network=NETWORK),
    "WeLaVAE, convolutional, its encoder without labels": lambda: WeLaVAE(
        SHAPE,
        [3],
        labels_in_encoder=False,
        regularizers={"tc": CovarianceMatching()},
        network=ConvNetwork(channels=(8, 8), hidden=(16,)),
    ),
}


def a_batch(
    n: int = 8, seed: int = 0, shape: tuple[int, int, int] = SHAPE, labels: int = 3, observed: int = 0
) -> Batch:
    """Random images of a stream; the first few of them carry their own one-hot labels, if `observed` asks for it."""
    x = torch.rand(n, *shape, generator=torch.Generator().manual_seed(seed))
    y = torch.full((n, labels), torch.nan)
    y[:observed] = torch.eye(labels)[torch.arange(observed) % labels]
    return Batch(x, y, torch.zeros(n, dtype=torch.bool))


def in_order(batches: list[Batch], shuffle: bool = False) -> BatchLoader:
    """These batches in the zoo's own loader, which a Trainer resumes and which draws no random numbers of its own."""
    return BatchLoader(lambda ids, _: batches[int(ids)], Epochs(torch.arange(len(batches)), 1, shuffle, seed=0))


models = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
Make = Callable[[], VAE]


def trainer(folder: Path, steps: int, **options: object) -> Trainer:
    return Trainer(
        default_root_dir=folder,
        max_steps=steps,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,  # type: ignore[arg-type]
    )


def loader(batches: int) -> BatchLoader:
    """Shuffled batches of the zoo's own loader, which resumes where it stopped."""
    images = a_batch(8 * batches).x

    def fetch(ids: Tensor, labelled: int) -> Batch:
        return a_batch(len(ids))._replace(x=images[ids])

    return BatchLoader(fetch, Epochs(torch.arange(len(images)), 8, shuffle=True, seed=0))
