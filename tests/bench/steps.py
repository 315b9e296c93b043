"""What a training step of each regularizer costs beside a plain VAE's, and how the costs grow."""

from collections.abc import Callable

import torch

from tests.bench.timing import best_of
from vaezoo.models import DIPVAE, TCVAE, AnnealedVAE, BetaVAE, FactorVAE, JointVAE, LaRVAE, PartedVAE
from vaezoo.models.base import VAE
from vaezoo.nn.networks import BurgessNetwork
from vaezoo.types import Batch

SHAPE, LABELS = (3, 64, 64), 6


def a_batch(size: int, labelled: int = 0) -> Batch:
    """Random images; the last few carry labels."""
    y = torch.full((size, LABELS), torch.nan)
    y[size - labelled :] = torch.rand(labelled, LABELS)
    return Batch(torch.rand(size, *SHAPE), y, torch.arange(size) >= size - labelled)


def a_step(model: VAE, batch: Batch) -> Callable[[], None]:
    """Forward, all terms, backward and update."""
    optimizer = torch.optim.Adam(model.parameters(), fused=True)

    def step() -> None:
        model.train()
        optimizer.zero_grad()
        torch.stack([term.loss for term in model.terms(batch).values()]).sum().backward()
        optimizer.step()

    return step


def regularizers(batch: int = 64) -> dict[str, Callable[[], None]]:
    """One step of every kind of term, all with the same network and the same number of images."""
    plain, half = a_batch(batch), a_batch(batch, batch // 2)
    return {
        "KL (VAE)": a_step(VAE(SHAPE), plain),
        "capacity (AnnealedVAE)": a_step(AnnealedVAE(SHAPE), plain),
        "capacities, discrete latents (JointVAE)": a_step(JointVAE(SHAPE, network=BurgessNetwork()), plain),
        "covariance (DIPVAE I)": a_step(DIPVAE(SHAPE, variant="i"), plain),
        "covariance, third moments (DIPVAE II)": a_step(DIPVAE(SHAPE, variant="ii", lambda_3=1.0), plain),
        "total correlation (TCVAE)": a_step(TCVAE(SHAPE), plain),
        "discriminator (FactorVAE)": a_step(FactorVAE(SHAPE), plain),
        "overlap, entropy, aggregate (PartedVAE)": a_step(PartedVAE(SHAPE, 5, 1, [3], network=BurgessNetwork()), plain),
        "labels, half of the images (LaRVAE)": a_step(LaRVAE(SHAPE, label_dim=LABELS, network=BurgessNetwork()), half),
    }


def run(rounds: int = 20) -> list[dict[str, object]]:
    """Measure and return one row a regularizer."""
    best = best_of(regularizers(), rounds)
    return [
        {"regularizer": name, "ms a step": round(1000 * seconds, 1), "of VAE": round(seconds / best["KL (VAE)"], 2)}
        for name, seconds in best.items()
    ]


def run_scaling(rounds: int = 6) -> list[dict[str, object]]:
    """Measure and return one row a batch size and latent size: those terms whose cost grows with both."""
    rows: list[dict[str, object]] = []
    for size, dim in [(16, 10), (64, 10), (256, 10), (64, 50), (64, 200)]:
        models = {
            "BetaVAE": BetaVAE(SHAPE, dim),
            "DIPVAE II": DIPVAE(SHAPE, dim, "ii"),
            "DIPVAE II, third moments": DIPVAE(SHAPE, dim, "ii", lambda_3=1.0),
            "TCVAE": TCVAE(SHAPE, dim),
            "FactorVAE": FactorVAE(SHAPE, dim),
        }
        batch = a_batch(size)
        best = best_of({name: a_step(model, batch) for name, model in models.items()}, rounds)
        beta = best.pop("BetaVAE")
        row: dict[str, object] = {"batch": size, "latents": dim, "BetaVAE, images/s": round(size / beta)}
        rows.append(row | {f"{name}, of BetaVAE": round(seconds / beta, 2) for name, seconds in best.items()})
    return rows
