"""Images a second of `fit` against a hand-written loop with the same network, batch and loss."""

import logging
from collections.abc import Callable

import torch
from lightning.pytorch import Callback, Trainer

from datamodules import Shapes3DDataModule
from datamodules.base import ImageDataModule
from tests.bench.timing import best_of
from vaezoo.base import VAE
from vaezoo.callbacks import Compile, ThroughputBar
from vaezoo.functional import gaussian_kl
from vaezoo.models import AnnealedVAE, BetaVAE
from vaezoo.networks import BurgessNetwork

STEPS, BATCH, SHAPE = 100, 64, (3, 64, 64)


def bare_loop() -> Callable[[], None]:
    """Network, loss and Adam, with the pictures in memory as floats."""
    network = BurgessNetwork()
    encoder, head, decoder = network.encoder(SHAPE), torch.nn.Linear(256, 20), network.decoder(SHAPE, 10)
    parameters = [p for module in (encoder, head, decoder) for p in module.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=5e-4)
    images = torch.rand(BATCH, *SHAPE)

    def loop() -> None:
        for _ in range(STEPS):
            mu, logvar = head(encoder(images)).chunk(2, dim=1)
            z = mu + (logvar / 2).exp() * torch.randn_like(mu)
            bce = torch.nn.functional.binary_cross_entropy_with_logits(decoder(z), images, reduction="sum") / BATCH
            loss = bce + 4 * gaussian_kl(mu, logvar).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return loop


def fit(model: VAE, data: ImageDataModule, *callbacks: Callback) -> Callable[[], None]:
    """`Trainer.fit` with logging and progress bar on."""

    def loop() -> None:
        trainer = Trainer(
            max_steps=STEPS,
            accelerator="cpu",
            default_root_dir="runs/bench",
            callbacks=[ThroughputBar(), *callbacks],
            enable_checkpointing=False,
            enable_model_summary=False,
            limit_val_batches=0,
        )
        trainer.fit(model, datamodule=data)

    return loop


def run(rounds: int = 3) -> list[dict[str, object]]:
    """Measure and return one row a candidate."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    data = Shapes3DDataModule(batch_size=BATCH)
    candidates = {
        "bare loop": bare_loop(),
        "fit BetaVAE": fit(BetaVAE(SHAPE), data),
        "fit AnnealedVAE": fit(AnnealedVAE(SHAPE), data),
        "fit BetaVAE, compiled": fit(BetaVAE(SHAPE), data, Compile()),
    }
    best = best_of(candidates, rounds)
    return [
        {
            "what": name,
            "images/s": round(STEPS * BATCH / seconds),
            "of the bare loop": round(best["bare loop"] / seconds, 2),
        }
        for name, seconds in best.items()
    ]
