"""Images a second of `fit` against a hand-written loop with the same network, batch and loss."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor

from datamodules import Shapes3DDataModule
from vaezoo.callbacks import Compile, GuardFinite, LastCheckpoint, StopOnSignal, ThroughputBar
from vaezoo.functional import gaussian_kl
from vaezoo.models import BetaVAE
from vaezoo.nn.networks import BurgessNetwork, Network
from vaezoo.pictures import SavePictures
from vaezoo.runs.checkpoint_io import AtomicCheckpointIO

WARM, STEPS, BATCH, SHAPE = 10, 100, 64, (3, 64, 64)


def adam_loop(
    loss_of: Callable[[Tensor], Tensor], parameters: Iterable[Tensor], steps: int = STEPS
) -> Callable[[], float]:
    """Loss, gradients and Adam on images in memory: seconds of the steps after the first few."""
    optimizer, images = torch.optim.Adam(parameters, lr=5e-4), torch.rand(BATCH, *SHAPE)

    def loop() -> float:
        start = 0.0
        for step in range(WARM + steps):
            if step == WARM:
                start = time.perf_counter()
            optimizer.zero_grad()
            loss_of(images).backward()
            optimizer.step()
        return time.perf_counter() - start

    return loop


def bare_loop(compiled: bool = False) -> Callable[[], float]:
    """Network, loss and Adam, with the pictures in memory as floats."""
    network = BurgessNetwork()
    encoder, head, decoder = network.encoder(SHAPE), torch.nn.Linear(256, 20), network.decoder(SHAPE, 10)
    parameters = [p for module in (encoder, head, decoder) for p in module.parameters()]

    def objective(x: Tensor) -> Tensor:
        mu, logvar = head(encoder(x)).chunk(2, dim=1)
        z = mu + (logvar / 2).exp() * torch.randn_like(mu)
        bce = torch.nn.functional.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum") / BATCH
        return bce + 4 * gaussian_kl(mu, logvar).sum(1).mean()

    return adam_loop(torch.compile(objective) if compiled else objective, parameters)


class _Timed(BetaVAE):
    """Seconds of the steps after the first few, in which a compiler may be at work.

    No callback, which would read, and so let the model log, what every step has to say.
    """

    start, seconds = 0.0, 0.0

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Look at the clock."""
        if self.trainer.global_step == WARM:
            self.start = time.perf_counter()
        self.seconds = time.perf_counter() - self.start


def fit(
    *callbacks: Callback, logs: bool = True, network: Network | None = None, steps: int = STEPS
) -> Callable[[], float]:
    """`Trainer.fit` with all that the command line adds, or with nothing but the model and its data."""
    model, data = (
        _Timed(SHAPE, network=network or BurgessNetwork()),
        Shapes3DDataModule(batch_size=BATCH, source="render"),
    )

    def loop() -> float:
        around = [ThroughputBar(), GuardFinite(), StopOnSignal(), LastCheckpoint()] if logs else []
        trainer = Trainer(
            max_steps=WARM + steps,
            accelerator="cpu",
            default_root_dir="runs/bench",
            logger=CSVLogger("runs", "bench", flush_logs_every_n_steps=1) if logs else False,
            plugins=AtomicCheckpointIO(),
            callbacks=[*callbacks, *around],
            enable_checkpointing=logs,
            enable_progress_bar=logs,
            enable_model_summary=False,
            limit_val_batches=0,
        )
        trainer.fit(model, datamodule=data)
        return model.seconds

    return loop


def run(rounds: int = 5) -> list[dict[str, object]]:
    """Measure and return one row a candidate, all in turn, several times; the best time of each counts."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    candidates = {
        "bare loop": bare_loop(),
        "fit, no log, no callbacks": fit(logs=False),
        "fit, with all that the command line adds": fit(SavePictures()),
        "bare loop, compiled": bare_loop(compiled=True),
        "fit, with all that the command line adds, compiled": fit(SavePictures(), Compile()),
    }
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, candidate in candidates.items():
            best[name] = min(best[name], candidate())
    return [
        {
            "what": name,
            "images/s": round(STEPS * BATCH / seconds),
            "of the bare loop": round(best["bare loop"] / seconds, 2),
        }
        for name, seconds in best.items()
    ]
