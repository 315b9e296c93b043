"""The callbacks of a command: those of the configuration, and what comes with every run."""

import json
import sys
from collections.abc import Sequence
from typing import Any, Literal

from jsonargparse import Namespace
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import Checkpoint, ProgressBar
from lightning.pytorch.utilities import rank_zero_warn

from vaezoo.callbacks import (
    BestCheckpoint,
    Compile,
    GuardFinite,
    LastCheckpoint,
    NoteSettings,
    ProgressLines,
    StopOnSignal,
    ThroughputBar,
)

# A run may go on elsewhere and in other ways of fetching the same batches.
_FREE = ("data_dir", "download", "num_workers", "device_resident")
INIT_FROM = "init_from"
_TRAINER = {
    "accumulate_grad_batches": 1,
    "gradient_clip_algorithm": "norm",
    "gradient_clip_val": None,
    "limit_train_batches": 1.0,
    "overfit_batches": 0.0,
    "precision": "32-true",
}
"""Options of the Trainer that decide how a run goes on, and what Lightning takes where they are not given."""


def settings_of(config: Namespace) -> dict[str, Any]:
    """What decides how a run goes on, beside its model: data, batches and precision, by the names of the options.

    Args:
        config: The parsed configuration of a command.
    """
    given = config.data.get("init_args")
    arguments = given.as_dict() if given else {}
    found = {"seed_everything": config.seed_everything, "data": config.data.class_path.rpartition(".")[2]}
    found |= {INIT_FROM: config.init_from, "freeze_encoder": config.freeze_encoder}
    found |= {f"data.{name}": arguments[name] for name in sorted(arguments) if name not in _FREE}
    for name, default in _TRAINER.items():
        value = config.trainer[name]
        found[f"trainer.{name}"] = default if value is None else value
    plain: dict[str, Any] = json.loads(json.dumps(found, default=as_plain))
    return plain


def check_callbacks(given: Sequence[Namespace], continues: bool) -> None:
    """Refuse callbacks of Lightning that would spoil a run without a word; let EarlyStopping look where it can resume.

    Args:
        given: The callbacks that the configuration names.
        continues: Whether the run starts from a checkpoint.
    """
    for callback in given:
        name = callback.class_path.rpartition(".")[2]
        arguments: Any = callback.get("init_args") or {}
        if name in ("WeightAveraging", "EMAWeightAveraging") and arguments.get("use_buffers"):
            raise ValueError(
                f"{name} with use_buffers: true averages counters too, as the model's step: give use_buffers: false"
            )
        if name == "EarlyStopping" and arguments.check_on_train_epoch_end is None:
            # By default it may look at the end of an epoch, where a run that continues has no validation to look at.
            arguments.check_on_train_epoch_end = not arguments.monitor.startswith("val/")
        if name == "StochasticWeightAveraging":
            if continues:
                raise ValueError(
                    f"Lightning's {name} does not continue where it stopped, so the run cannot: start it again, or use "
                    "EMAWeightAveraging with use_buffers: false"
                )
            rank_zero_warn(f"a run with Lightning's {name} cannot be resumed once it is stopped")


def all_callbacks(
    config: Namespace, signals: StopOnSignal, settings: dict[str, Any], compiles: bool | Literal["auto"]
) -> list[Callback]:
    """The given callbacks, with the guard, checkpoints and the progress bar where the configuration names no others.

    Args:
        config: The Trainer's configuration, its callbacks built.
        signals: What stops the run.
        settings: What its checkpoints note.
        compiles: Whether to compile, where no callback says so.
    """
    given: list[Callback] = config.callbacks or []
    callbacks: list[Callback] = [signals, NoteSettings(settings), *given]
    if compiles and not any(isinstance(c, Compile) for c in given):
        callbacks.append(Compile("auto" if compiles == "auto" else "always"))
    if not any(isinstance(c, GuardFinite) for c in given):
        callbacks.append(GuardFinite())
    if config.enable_progress_bar is not False and not any(isinstance(c, ProgressBar) for c in given):
        callbacks.append(ThroughputBar() if sys.stdout.isatty() else ProgressLines())
    if config.enable_checkpointing is not False:
        checkpoints = [c for c in given if isinstance(c, Checkpoint)]
        if all(isinstance(c, LastCheckpoint) for c in checkpoints):
            callbacks.append(BestCheckpoint())
        if not any(isinstance(c, LastCheckpoint) for c in checkpoints):
            callbacks.append(LastCheckpoint())
    # What the last checkpoint holds must include what the others note at the same step.
    return sorted(callbacks, key=lambda callback: isinstance(callback, LastCheckpoint))


def as_plain(value: Any) -> Any:
    """What JSON does not know, as what it does."""
    return value.as_dict() if isinstance(value, Namespace) else str(value)
