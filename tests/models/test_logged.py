"""Training values are logged in the steps that somebody reads, with the values of those steps."""

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint, ProgressBar

from tests.helpers.resuming import Rows
from tests.helpers.zoo import MODELS, a_batch, in_order
from vaezoo.callbacks import GuardFinite, LastCheckpoint, ProgressLines, ThroughputBar
from vaezoo.models.base import VAE

BATCHES = [a_batch(seed=seed) for seed in range(10)]


class Counted:
    """Counts the steps whose values are logged, and keeps the loss of every step."""

    def __init__(self, name: str) -> None:
        self.model = MODELS[name]()
        self.logged: list[int] = []
        self.losses: list[float] = []
        log, step = self.model.log_dict, self.model.training_step

        def log_dict(values: dict[str, Any], **options: Any) -> None:
            if values.keys() & {"train/loss"}:
                self.logged.append(len(self.losses))
            log(values, **options)

        def training_step(*args: Any) -> Any:
            self.losses.append(float(loss := step(*args)))
            return loss

        self.model.log_dict = log_dict  # type: ignore[method-assign,assignment]
        self.model.training_step = training_step  # type: ignore[method-assign]


def fit(model: VAE, folder: Path, *callbacks: Callback, **options: Any) -> Trainer:
    bar = any(isinstance(callback, ProgressBar) for callback in callbacks)
    quiet: dict[str, Any] = {"enable_model_summary": False, "accelerator": "cpu", "num_sanity_val_steps": 0}
    quiet |= {
        "enable_progress_bar": bar,
        "enable_checkpointing": any(isinstance(c, ModelCheckpoint) for c in callbacks),
    }
    options = {"logger": False, "max_epochs": 1, "log_every_n_steps": 50} | options
    trainer = Trainer(default_root_dir=folder, callbacks=list(callbacks), **quiet, **options)
    trainer.fit(model, in_order(BATCHES), in_order(BATCHES[:1]) if "val_check_interval" in options else None)
    return trainer


@pytest.mark.parametrize("name", ["BetaVAE", "PartedVAE"])
@pytest.mark.parametrize(
    ("callbacks", "options", "steps"),
    [
        ([], {}, [9]),
        ([], {"log_every_n_steps": 4}, [3, 7, 9]),
        ([], {"max_steps": 6}, [5]),
        ([], {"fast_dev_run": 3}, [0, 1, 2]),
        ([], {"val_check_interval": 3}, [2, 5, 8, 9]),
        ([GuardFinite(), LastCheckpoint()], {}, [9]),
        ([ThroughputBar(refresh_rate=3)], {}, [2, 5, 8, 9]),
        ([ProgressLines()], {}, [9]),
        ([Callback()], {}, [9]),
        ([type("Own", (Callback,), {})()], {}, list(range(10))),
        ([ModelCheckpoint(monitor="train/loss", every_n_train_steps=2)], {}, list(range(10))),
    ],
    ids=[
        "the last",
        "written",
        "last of the run",
        "dry",
        "validated",
        "ours",
        "shown",
        "lines",
        "nothing",
        "own",
        "monitored",
    ],
)
def test_values_are_logged_where_they_are_read(
    name: str, callbacks: list[Callback], options: dict[str, Any], steps: list[int], tmp_path: Path
) -> None:
    counted = Counted(name)
    fit(counted.model, tmp_path, *callbacks, **options)
    assert counted.logged == steps


def test_what_is_written_is_of_its_own_step(tmp_path: Path) -> None:
    counted, rows = Counted("BetaVAE"), Rows()
    trainer = fit(counted.model, tmp_path, logger=rows, log_every_n_steps=4)
    written = {step: values["train/loss"] for step, values in rows.rows if "train/loss" in values}
    assert written == {step: pytest.approx(counted.losses[step]) for step in (3, 7)}
    assert trainer.callback_metrics["train/loss"] == pytest.approx(counted.losses[-1])


def test_a_callback_of_the_users_own_reads_every_step(tmp_path: Path) -> None:
    class Reads(Callback):
        seen: list[float] = []  # noqa: RUF012

        def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
            self.seen.append(trainer.callback_metrics["train/loss"].item())

    counted, reads = Counted("BetaVAE"), Reads()
    fit(counted.model, tmp_path, reads)
    assert reads.seen == pytest.approx(counted.losses)


def test_the_latest_terms_are_there_in_every_step() -> None:
    model = MODELS["BetaVAE"]()
    loss = model.training_step(BATCHES[0])
    assert set(model.latest) == {"loss", "recon", "kl"}
    assert not any(term.requires_grad for term in model.latest.values())
    torch.testing.assert_close(model.latest["loss"], loss.detach())
