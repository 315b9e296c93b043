"""What a step costs beside its arithmetic: a network so small that everything else is what is measured."""

import logging
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from datamodules.factors import Factor
from datamodules.grids import GridDataModule
from tests.bench.timing import beside
from tests.helpers.toy import Numbered
from vaezoo.cli.main import run as command
from vaezoo.models import BetaVAE
from vaezoo.nn.networks import DenseNetwork

WARM, STEPS, BATCH, SHAPE = 100, 500, 16, (1, 1, 2)
starts: list[float] = []
"""When the steps of a run began."""


class Timed(LightningModule):
    """Notes when its steps start; a callback would read, and so let the model log, what every step has to say."""

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """Look at the clock."""
        starts.append(time.perf_counter())
        super().on_train_batch_start(batch, batch_idx)


class TimedVAE(Timed, BetaVAE):
    """β-VAE with a clock."""


class Pictures(GridDataModule):
    """More tiny pictures than the steps take."""

    image_shape, factors, source = SHAPE, (Factor("number", 12_000),), "render"

    def __init__(self) -> None:
        super().__init__(batch_size=BATCH, val_size=100, test_size=100)

    def open(self) -> Numbered:
        """Pictures that spell their numbers."""
        return Numbered(12_000)


class Plain(Timed):
    """The same model in Lightning's own terms, with one logged value."""

    def __init__(self) -> None:
        super().__init__()
        self.vae = a_model()

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        """The loss."""
        loss = total(self.vae, batch[0])
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), fused=True)


def a_model() -> BetaVAE:
    """Three dozen weights."""
    return BetaVAE(SHAPE, latent_dim=2, network=DenseNetwork([8], [8]))


def total(model: BetaVAE, x: Tensor) -> Tensor:
    """The loss of a batch."""
    return torch.stack([term.loss for term in model.terms(x).values()]).sum()


def images() -> DataLoader[tuple[Tensor, ...]]:
    """Batches of an array in memory."""
    return DataLoader(TensorDataset(torch.rand((WARM + STEPS) * BATCH, *SHAPE)), BATCH)


def bare_loop() -> None:
    """Loss, gradients, Adam."""
    model = a_model().train()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    for (x,) in images():
        starts.append(time.perf_counter())
        optimizer.zero_grad()
        total(model, x).backward()
        optimizer.step()


def plain_lightning() -> None:
    """A Trainer with a CSV log and nothing else."""
    quiet: dict[str, Any] = {"enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    Trainer(max_steps=WARM + STEPS, accelerator="cpu", logger=CSVLogger("."), **quiet).fit(Plain(), images())


def fit() -> None:
    """`vaezoo fit` with all that it adds: log, progress bar, guard and checkpoints."""
    network = '{"class_path": "DenseNetwork", "init_args": {"encoder_widths": [8], "decoder_widths": [8]}}'
    model = ["--model=tests.bench.overhead.TimedVAE", "--model.latent_dim=2", f"--model.network={network}"]
    limits = [f"--trainer.max_steps={WARM + STEPS}", "--trainer.limit_val_batches=0", "--trainer.accelerator=cpu"]
    if code := command(["fit", *model, "--data=tests.bench.overhead.Pictures", *limits]):
        raise RuntimeError(f"vaezoo fit ended with {code}")


def milliseconds(candidate: Callable[[], None]) -> float:
    """Median time from one step to the next."""
    starts.clear()
    candidate()
    times = starts[WARM:]
    return 1e3 * statistics.median(b - a for a, b in pairwise(times))


def run(rounds: int = 5) -> list[dict[str, object]]:
    """Measure in turns, and return one row a candidate: best and median of the rounds."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    candidates = {"bare loop": bare_loop, "Lightning, one logged value": plain_lightning, "vaezoo fit": fit}
    found = beside("Lightning, one logged value", candidates, milliseconds, rounds)
    return [
        {
            "what": name,
            "ms a step": round(best, 2),
            "of Lightning (≤ 1)": round(ratio, 2),
            "median": round(median, 2),
        }
        for name, (best, ratio, median) in found.items()
    ]
