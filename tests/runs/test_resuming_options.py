"""A run that continues is the unbroken run with the Trainer's options and callbacks, too."""

import signal
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import EMAWeightAveraging, GradientAccumulationScheduler

from tests.helpers.resuming import Run, Signalled, run, same, same_end
from vaezoo.callbacks import LastCheckpoint
from vaezoo.runs.checkpoint_io import read_checkpoint


@pytest.fixture(autouse=True)
def _seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PL_GLOBAL_SEED", "3")


def last(folder: Path) -> Path:
    return folder / "checkpoints" / "last.ckpt"


def stopped_and_resumed(name: str, folder: Path, stop: Signalled, *callbacks: type[Callback], **options: Any) -> Run:
    """Compare a run that is stopped and resumed with an unbroken one, in all that it logs and ends with."""
    made = [lambda kind=kind: kind() for kind in callbacks]
    unbroken = run(name, folder / "unbroken", None, *(make() for make in made), **options)
    stopped = run(name, folder / "first", None, stop, *(make() for make in made), **options)
    resumed = run(name, folder / "second", last(folder / "first"), *(make() for make in made), **options)
    same(unbroken.rows, stopped.rows + resumed.rows, "rows")
    same_end(unbroken, resumed, int(stopped.model.step))
    return resumed


class Average(EMAWeightAveraging):
    def __init__(self) -> None:
        super().__init__(use_buffers=False, decay=0.5)


class Accumulate(GradientAccumulationScheduler):
    def __init__(self) -> None:
        super().__init__({0: 2, 2: 3})


@pytest.mark.parametrize("limit", [2, 0.7])
@pytest.mark.parametrize("batch", [1, 3, 4])
def test_a_limit_of_batches(limit: float, batch: int, tmp_path: Path) -> None:
    stopped_and_resumed("BetaVAE", tmp_path, Signalled(signal.SIGTERM, batch), limit_train_batches=limit)


@pytest.mark.parametrize(("batch", "validation"), [(2, False), (3, True), (4, False)])
def test_averaged_weights(batch: int, validation: bool, tmp_path: Path) -> None:
    stop = Signalled(signal.SIGTERM, batch, validation=validation)
    stopped_and_resumed("BetaVAE", tmp_path, stop, Average)
    first, second = (read_checkpoint(last(tmp_path / name)) for name in ("first", "unbroken"))
    assert first["state_dict"]["step"] == batch
    same(second["state_dict"], read_checkpoint(last(tmp_path / "second"))["state_dict"])


@pytest.mark.parametrize("batch", [2, 3, 5, 8])
def test_scheduled_accumulation(batch: int, tmp_path: Path) -> None:
    stop = Signalled(signal.SIGTERM, batch)
    unbroken = run("BetaVAE", tmp_path / "unbroken", None, Accumulate())
    stopped = run("BetaVAE", tmp_path / "first", None, stop, Accumulate())
    resumed = run("BetaVAE", tmp_path / "second", last(tmp_path / "first"), Accumulate())
    same(unbroken.rows, stopped.rows + resumed.rows, "rows")
    same(unbroken.model.state_dict(), resumed.model.state_dict())


def test_a_term_that_draws_in_a_validation(tmp_path: Path) -> None:
    stopped_and_resumed("FactorVAE", tmp_path, Signalled(signal.SIGTERM, 3, validation=True))


@pytest.mark.parametrize(("batch", "validation"), [(2, False), (4, False), (4, True), (5, False)])
def test_validations_counted_over_epochs(batch: int, validation: bool, tmp_path: Path) -> None:
    """Epochs have three batches; a validation follows every fourth batch, as the command line sets it."""
    options = {"val_check_interval": 4, "check_val_every_n_epoch": None}
    resumed = stopped_and_resumed("BetaVAE", tmp_path, Signalled(signal.SIGTERM, batch, validation), **options)
    # A signal that comes before the validation stops it after its first batch, to begin again.
    assert [step for step, row in resumed.rows if "val/loss" in row] == ([3, 7] if batch <= 4 else [7])


class Slow(Callback):
    """Two minutes pass in each step."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        patch.setattr("time.monotonic", lambda: self.now)

    def on_train_batch_start(self, *_: Any) -> None:
        self.now += 120


def test_slow_steps_are_saved_by_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = []

    class Noted(LastCheckpoint):
        def _save(self, trainer: Trainer) -> None:
            super()._save(trainer)
            saved.append(trainer.global_step)

    keep = Noted(every_n_minutes=5)
    run("BetaVAE", tmp_path, None, Slow(monkeypatch), keep)
    assert saved == [3, 6, 8]
    with pytest.raises(ValueError, match="every_n_minutes must be above 0, or null, not 0"):
        LastCheckpoint(every_n_minutes=0)
