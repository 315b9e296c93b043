"""Runs to stop, continue and compare."""

import os
import random
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor

from datamodules.loader import BatchLoader, Epochs
from tests.helpers.zoo import MODELS, a_batch
from vaezoo.callbacks import BestCheckpoint, LastCheckpoint, StopOnSignal
from vaezoo.models import PartedVAE
from vaezoo.models.base import VAE
from vaezoo.runs.checkpoint_io import AtomicCheckpointIO
from vaezoo.runs.files import link
from vaezoo.types import Batch

EPOCH, STEPS = 3, 8  # optimizer steps


class Rows(Logger):
    """Keeps what is logged."""

    name, version = "rows", 0

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[int | None, dict[str, float]]] = []

    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        pass

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        self.rows.append((step, dict(metrics)))


class Draws(Callback):
    """Draws random numbers after every batch, as a user's callback may."""

    def __init__(self) -> None:
        self.drawn: dict[int, tuple[float, float, float]] = {}

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        batch = trainer.fit_loop.total_batch_idx
        self.drawn[batch] = torch.rand(()).item(), float(np.random.rand()), random.random()  # noqa: NPY002


class KeepAll(LastCheckpoint):
    """Every checkpoint that a killed process might have left behind."""

    def _save(self, trainer: Trainer) -> None:
        super()._save(trainer)
        link(Path(self.last_model_path), Path(self.last_model_path).with_name(f"{trainer.global_step}.ckpt"))


class Signalled(Callback):
    """Sends the process a signal within a batch of training or of validation."""

    def __init__(self, number: int, batch: int, validation: bool = False) -> None:
        self.number, self.batch, self.validation = number, batch, validation

    def _send(self, trainer: Trainer, validation: bool) -> None:
        if trainer.fit_loop.total_batch_idx + 1 == self.batch and validation == self.validation:
            os.kill(os.getpid(), self.number)

    def on_train_batch_start(self, trainer: Trainer, *_: Any) -> None:
        self._send(trainer, False)

    def on_validation_batch_start(self, trainer: Trainer, *_: Any) -> None:
        self._send(trainer, True)


class Run(NamedTuple):
    model: VAE
    trainer: Trainer
    rows: list[tuple[int | None, dict[str, float]]]
    drawn: dict[int, tuple[float, float, float]]
    best: dict[str, Any]


def loader(model: VAE, batches: int, workers: int = 0, train: bool = True) -> BatchLoader:
    """Shuffled batches with a second stream of labelled images."""
    images = a_batch(8 * batches, seed=0 if train else 1).x
    sizes = torch.tensor(model.classes.sizes if isinstance(model, PartedVAE) else [])

    def fetch(ids: Tensor, labelled: int) -> Batch:
        known = torch.arange(len(ids)) >= len(ids) - labelled
        y = ids[:, None] % sizes if len(sizes) else torch.eye(3)[ids % 3]
        return Batch(images[ids], torch.where(known[:, None], y, torch.nan), known)

    labels = (torch.arange(10), 4) if train else ()
    return BatchLoader(fetch, Epochs(torch.arange(len(images)), 8, train, 0, *labels), workers)


def run(
    name: str, folder: Path, checkpoint: Path | None = None, *more: Callback, accumulate: int = 1, **options: Any
) -> Run:
    """Train from the start or from a checkpoint, with a validation at the end of each epoch."""
    torch.manual_seed(7 if checkpoint is None else 8)  # nothing of the start matters to a run that continues
    model, rows, draws, best = MODELS[name](), Rows(), Draws(), BestCheckpoint()
    workers = options.pop("workers", 0)
    trainer = Trainer(
        **{"max_steps": STEPS, "limit_val_batches": 2, "num_sanity_val_steps": 0} | options,
        default_root_dir=folder,
        accelerator="cpu",
        logger=rows,
        log_every_n_steps=1,
        accumulate_grad_batches=accumulate,
        callbacks=[StopOnSignal(), draws, *more, best, KeepAll(1)],
        plugins=[AtomicCheckpointIO()],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    best.dirpath = trainer.callbacks[-1].dirpath = str(folder / "checkpoints")  # type: ignore[attr-defined]
    data = loader(model, EPOCH * accumulate, workers), loader(model, 2, train=False)
    data[0].limit = options.get("limit_train_batches")  # as a datamodule's loader takes it from its Trainer
    try:
        trainer.fit(model, *data, ckpt_path=checkpoint, weights_only=True)
    except SIGTERMException:
        assert more
    return Run(model, trainer, rows.rows, draws.drawn, best.state_dict())


def same(a: Any, b: Any, place: str = "") -> None:
    if isinstance(a, Tensor):
        assert torch.equal(a, b), place
    elif isinstance(a, dict):
        assert a.keys() == b.keys(), place
        for key in a:
            same(a[key], b[key], f"{place}.{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), place
        for i, pair in enumerate(zip(a, b, strict=True)):
            same(*pair, f"{place}.{i}")
    else:
        assert a == b or (a != a and b != b), place


def same_end(unbroken: Run, resumed: Run, batches: int) -> None:
    """Compare all that a run ends with, and all that it said after so many training batches."""
    same(unbroken.model.state_dict(), resumed.model.state_dict(), "model")
    for kind in ("optimizers", "lr_scheduler_configs"):
        a, b = (getattr(run.trainer, kind) for run in (unbroken, resumed))
        same(*([getattr(x, "scheduler", x).state_dict() for x in part] for part in (a, b)), kind)
    for count in ("global_step", "current_epoch"):
        assert getattr(unbroken.trainer, count) == getattr(resumed.trainer, count), count
    same(unbroken.best["best_model_score"], resumed.best["best_model_score"], "best")
    same({batch: x for batch, x in unbroken.drawn.items() if batch >= batches}, resumed.drawn, "drawn")
    same(unbroken.rows[len(unbroken.rows) - len(resumed.rows) :], resumed.rows, "rows")
    if resumed.rows[0][0] is not None:
        assert resumed.rows[0][0] >= batches // unbroken.trainer.accumulate_grad_batches - 1
