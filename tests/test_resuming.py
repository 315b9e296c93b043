"""A run that stops and continues is the unbroken run, bit for bit."""

import os
import random
import signal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import Tensor

from datamodules.loader import BatchLoader, Epochs
from tests.zoo import MODELS, a_batch
from vaezoo.callbacks import BestCheckpoint, LastCheckpoint, StopOnSignal
from vaezoo.callbacks.checkpoints import link
from vaezoo.models import PartedVAE
from vaezoo.models.base import VAE
from vaezoo.runs.checkpoint_io import AtomicCheckpointIO
from vaezoo.types import Batch

EPOCH, STEPS = 3, 8  # optimizer steps
models = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(autouse=True)
def _seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PL_GLOBAL_SEED", "3")


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


@models
@pytest.mark.parametrize("accumulate", [1, 2])
def test_every_checkpoint_of_a_run_leads_to_its_end(name: str, accumulate: int, tmp_path: Path) -> None:
    if accumulate > 1 and not MODELS[name]().automatic_optimization:
        pytest.skip("Lightning accumulates no gradients under manual optimization")
    unbroken = run(name, tmp_path, accumulate=accumulate)
    assert unbroken.model.step == STEPS * accumulate
    for step in (2, 3, 4):  # within an epoch, at its end after the validation, in the first batch of the next
        checkpoint = tmp_path / "checkpoints" / f"{step}.ckpt"
        resumed = run(name, tmp_path / str(step), checkpoint, accumulate=accumulate)
        same_end(unbroken, resumed, step * accumulate)


@pytest.mark.parametrize("name", ["DIPVAE II", "PartedVAE"])
@pytest.mark.parametrize(
    ("options", "stop"),
    [
        ({}, Signalled(signal.SIGTERM, 2)),
        ({}, Signalled(signal.SIGINT, 3)),
        ({}, Signalled(signal.SIGTERM, 3, validation=True)),
        ({"val_check_interval": 2}, Signalled(signal.SIGTERM, 2)),
        ({"val_check_interval": 2}, Signalled(signal.SIGINT, 2, validation=True)),
        ({"max_steps": -1, "max_epochs": 3}, Signalled(signal.SIGTERM, 3)),
        ({"max_steps": -1, "max_epochs": 3}, Signalled(signal.SIGTERM, 4)),
        ({"workers": 1}, Signalled(signal.SIGTERM, 4)),
    ],
    ids=lambda x: "-".join(map(str, (x.number, x.batch, x.validation))) if isinstance(x, Signalled) else None,
)
def test_a_run_that_a_signal_stops_continues_exactly(
    name: str, options: dict[str, Any], stop: Signalled, tmp_path: Path
) -> None:
    unbroken = run(name, tmp_path / "unbroken", **options)
    stopped = run(name, tmp_path / "first", None, stop, **options)
    assert stopped.model.step == stop.batch
    resumed = run(name, tmp_path / "second", tmp_path / "first" / "checkpoints" / "last.ckpt", **options)
    same_end(unbroken, resumed, stop.batch)
    same(unbroken.rows, stopped.rows + resumed.rows, "rows")  # nothing is logged twice, nothing is missing


@pytest.mark.parametrize("where", [{"validation": True}, {}], ids=["validation", "training"])
def test_a_run_stopped_in_a_validation_and_once_more_continues_exactly(where: dict[str, bool], tmp_path: Path) -> None:
    options = {"val_check_interval": 2}
    unbroken = run("BetaVAE", tmp_path / "unbroken", **options)
    first = run("BetaVAE", tmp_path / "first", None, Signalled(signal.SIGTERM, 2, validation=True), **options)
    stop = Signalled(signal.SIGTERM, 5 if where else 3, **where)
    second = run("BetaVAE", tmp_path / "second", tmp_path / "first" / "checkpoints" / "last.ckpt", stop, **options)
    third = run("BetaVAE", tmp_path / "third", tmp_path / "second" / "checkpoints" / "last.ckpt", **options)
    same(unbroken.rows, first.rows + second.rows + third.rows, "rows")
    same_end(unbroken, third, second.model.step)


def test_a_signal_waits_for_accumulated_gradients(tmp_path: Path) -> None:
    unbroken = run("FactorVAE", tmp_path / "unbroken", accumulate=2)
    stopped = run("FactorVAE", tmp_path / "first", None, Signalled(signal.SIGTERM, 3), accumulate=2)
    assert stopped.model.step == 4
    resumed = run("FactorVAE", tmp_path / "second", tmp_path / "first" / "checkpoints" / "last.ckpt", accumulate=2)
    same_end(unbroken, resumed, 4)


@pytest.mark.parametrize("name", ["JointVAE", "PartedVAE"])
@pytest.mark.parametrize(
    ("low", "high", "steps"),
    [
        ({"max_steps": 2}, {}, 2),
        ({"max_steps": 3}, {}, 3),
        ({"max_steps": -1, "max_epochs": 1}, {"max_steps": -1, "max_epochs": 3}, EPOCH),
    ],
    ids=["2 steps", "3 steps", "epoch"],
)
def test_a_run_that_ended_goes_on_under_a_higher_limit(
    name: str, low: dict[str, int], high: dict[str, int], steps: int, tmp_path: Path
) -> None:
    unbroken = run(name, tmp_path / "unbroken", **high)
    run(name, tmp_path / "first", **low)
    resumed = run(name, tmp_path / "second", tmp_path / "first" / "checkpoints" / "last.ckpt", **high)
    same_end(unbroken, resumed, steps)


def test_what_the_user_saves_after_fit_goes_on_with_the_same_weights(tmp_path: Path) -> None:
    """Lightning's count of epochs is one ahead in a checkpoint saved after `fit`; all else is as it was."""
    unbroken = run("JointVAE", tmp_path / "unbroken")
    run("JointVAE", tmp_path / "first", max_steps=2).trainer.save_checkpoint(tmp_path / "mine.ckpt")
    resumed = run("JointVAE", tmp_path / "second", tmp_path / "mine.ckpt")
    same(unbroken.model.state_dict(), resumed.model.state_dict())


def test_an_error_within_a_step_leaves_the_last_checkpoint_alone(tmp_path: Path) -> None:
    class Fail(Callback):
        def on_before_optimizer_step(self, trainer: Trainer, *_: Any) -> None:
            if trainer.global_step == 2:
                raise RuntimeError("out of memory")

    unbroken = run("VAE", tmp_path / "unbroken")
    with pytest.raises(RuntimeError, match="out of memory"):
        run("VAE", tmp_path / "first", None, Fail())
    same_end(unbroken, run("VAE", tmp_path / "second", tmp_path / "first" / "checkpoints" / "last.ckpt"), 2)


def test_without_a_seed_generators_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PL_GLOBAL_SEED")
    drawn = [run("VAE", tmp_path / str(seed), max_steps=2).drawn for seed in range(2)]  # manual_seed(7) both times
    assert drawn[0][0][0] == drawn[1][0][0]
    assert drawn[0][0][1:] != drawn[1][0][1:]
