"""A run that stops and continues is the unbroken run, bit for bit."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch import Callback, Trainer

from tests.helpers.resuming import EPOCH, Run, Signalled, run, same, same_end
from tests.helpers.zoo import MODELS

models = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(autouse=True)
def _seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PL_GLOBAL_SEED", "3")


@pytest.fixture(scope="module")
def unbroken_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Runs to compare with, one for each model and its options."""
    made = dict[str, Run]()

    def unbroken(name: str, **options: Any) -> Run:
        key = f"{name} {options}"
        if key not in made:
            made[key] = run(name, tmp_path_factory.mktemp("unbroken"), **options)
        return made[key]

    return unbroken


@models
@pytest.mark.parametrize("accumulate", [1, 2])
def test_every_checkpoint_of_a_run_leads_to_its_end(name: str, accumulate: int, tmp_path: Path) -> None:
    if accumulate > 1 and not MODELS[name]().automatic_optimization:
        pytest.skip("Lightning accumulates no gradients under manual optimization")
    options: dict[str, Any] = {"accumulate": accumulate, "max_steps": 2 * EPOCH + 1}
    unbroken = run(name, tmp_path, **options)
    assert unbroken.model.step == options["max_steps"] * accumulate
    for step in (2, 3, 4):  # within an epoch, at its end after the validation, in the first batch of the next
        checkpoint = tmp_path / "checkpoints" / f"{step}.ckpt"
        resumed = run(name, tmp_path / str(step), checkpoint, **options)
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
    name: str, options: dict[str, Any], stop: Signalled, tmp_path: Path, unbroken_run: Callable[..., Run]
) -> None:
    unbroken = unbroken_run(name, **options)
    stopped = run(name, tmp_path / "first", None, stop, **options)
    assert stopped.model.step == stop.batch
    resumed = run(name, tmp_path / "second", tmp_path / "first" / "checkpoints" / "last.ckpt", **options)
    same_end(unbroken, resumed, stop.batch)
    same(unbroken.rows, stopped.rows + resumed.rows, "rows")  # nothing is logged twice, nothing is missing


@pytest.mark.parametrize("where", [{"validation": True}, {}], ids=["validation", "training"])
def test_a_run_stopped_in_a_validation_and_once_more_continues_exactly(
    where: dict[str, bool], tmp_path: Path, unbroken_run: Callable[..., Run]
) -> None:
    options = {"val_check_interval": 2}
    unbroken = unbroken_run("BetaVAE", **options)
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
    name: str, low: dict[str, int], high: dict[str, int], steps: int, tmp_path: Path, unbroken_run: Callable[..., Run]
) -> None:
    unbroken = unbroken_run(name, **high)
    run(name, tmp_path / "first", **low)
    resumed = run(name, tmp_path / "second", tmp_path / "first" / "checkpoints" / "last.ckpt", **high)
    same_end(unbroken, resumed, steps)


def test_what_the_user_saves_after_fit_goes_on_with_the_same_weights(
    tmp_path: Path, unbroken_run: Callable[..., Run]
) -> None:
    """Lightning's count of epochs is one ahead in a checkpoint saved after `fit`; all else is as it was."""
    unbroken = unbroken_run("JointVAE")
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
