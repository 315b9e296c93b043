"""Every private name of Lightning that is used, in the lowest room that knows Lightning.

Each function says what it asks and why the public API does not answer. `tests/test_fences.py` has a test a name, which
says what a release of Lightning has moved; nothing private is used anywhere else.
"""

from inspect import Parameter, signature
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import LambdaCallback, ProgressBar, Timer

if TYPE_CHECKING:
    from lightning.pytorch.loggers import WandbLogger

Model = TypeVar("Model", bound=LightningModule)

_VALIDATION = "epoch_loop.val_loop.batch_progress"
_COUNTS = ("ready", "started", "processed", "completed")


def give_save_dir_a_default() -> None:
    """Let `TensorBoardLogger` be named without a folder, as every other logger may be; its signature asks for one."""
    from lightning.pytorch.loggers import TensorBoardLogger

    parameters = signature(TensorBoardLogger.__init__).parameters
    if parameters["save_dir"].default is Parameter.empty:
        TensorBoardLogger.__init__.__defaults__ = (".", *(TensorBoardLogger.__init__.__defaults__ or ()))


def has_trainer(model: LightningModule) -> bool:
    """Whether a Trainer runs the model; the public `trainer` raises without one, and stands for Fabric as well."""
    return model._trainer is not None


def accumulates(trainer: Trainer) -> bool:
    """Whether the batch left the weights alone; the public `global_step` does not tell before the next batch."""
    return trainer.fit_loop._should_accumulate()


def validates_now(trainer: Trainer) -> bool:
    """Whether a validation follows this batch; the loop alone knows, by interval, epoch and limits together."""
    fetcher = trainer.fit_loop._data_fetcher
    return fetcher is not None and trainer.fit_loop.epoch_loop._should_check_val_fx(fetcher)


def reads_training_values(trainer: Trainer) -> bool:
    """Whether anybody reads what this training step logs; the loop alone knows which steps are written.

    Logging four values takes Lightning as long as the rest of a small model's step. Loggers read one step in
    `log_every_n_steps`, a progress bar one in `refresh_rate`. A callback of the user's own may read every step.
    """
    loop = trainer.fit_loop.epoch_loop
    dry = trainer.fast_dev_run  # type: ignore[attr-defined]  # Lightning sets it from elsewhere
    return (
        bool(dry)
        or trainer._logger_connector.should_update_logs
        or loop.batch_progress.is_last_batch
        or 0 < trainer.max_steps <= trainer.global_step + 1
        or any(_reads(callback, loop.batch_idx + 1) for callback in trainer.callbacks)  # type: ignore[attr-defined]
        or any("train/" in str(config.monitor) for config in trainer.lr_scheduler_configs)
        or validates_now(trainer)
    )


def _reads(callback: Callback, batches: int) -> bool:
    """Whether a callback may read values after so many batches of an epoch."""
    if isinstance(callback, ProgressBar):
        rate = getattr(callback, "refresh_rate", 1)
        return rate > 0 and batches % rate == 0
    if isinstance(callback, LambdaCallback | Timer):  # the second stops a run at any step, which then is written
        return True
    if type(callback).__module__.partition(".")[0] not in ("lightning", "vaezoo"):
        return True
    return any("train/" in str(getattr(callback, name, "")) for name in ("monitor", "filename"))


def ask_to_stop(trainer: Trainer) -> None:
    """End training after this batch with `SIGTERMException`; the public `should_stop` ends as if all were done."""
    trainer._signal_connector.received_sigterm = True


def epochs_done(checkpoint: dict[str, Any]) -> int:
    """Complete epochs; the public `epoch` is the same before and after the last batch of one."""
    loop = checkpoint["loops"]["fit_loop"]
    epochs = loop["epoch_progress"]["current"]
    within = epochs["ready"] > epochs["processed"]
    return int(epochs["processed"] + (within and loop["epoch_loop.batch_progress"]["is_last_batch"]))


def missing_state(checkpoint: dict[str, Any]) -> str:
    """What a checkpoint lacks of the state of a training; empty where it is all there.

    Lightning fails with a key that says nothing, or begins anew what is missing.
    """
    step, loops = checkpoint.get("global_step"), checkpoint.get("loops")
    loop = loops.get("fit_loop") if isinstance(loops, dict) else None
    progress = ("epoch_progress", "epoch_loop.batch_progress", _VALIDATION)
    there = {
        "number of steps (global_step)": isinstance(step, int) and not isinstance(step, bool) and step >= 0,
        "progress of its epochs and batches (loops)": isinstance(loop, dict)
        and all(_counts(loop, k) for k in progress),
        "state of the optimizers (optimizer_states)": _full(checkpoint, "optimizer_states"),
        "state of the schedulers (lr_schedulers)": isinstance(checkpoint.get("lr_schedulers"), list),
        "state of the callbacks (callbacks)": isinstance(checkpoint.get("callbacks"), dict),
    }
    return next((name for name, present in there.items() if not present), "")


def _counts(loop: dict[str, Any], name: str) -> bool:
    progress = loop.get(name)
    return isinstance(progress, dict) and all(isinstance(progress.get(part), dict) for part in ("total", "current"))


def _full(checkpoint: dict[str, Any], name: str) -> bool:
    states = checkpoint.get(name)
    return isinstance(states, list) and bool(states) and all(isinstance(state, dict) for state in states)


def begin_validation_again(checkpoint: dict[str, Any]) -> None:
    """Let a run go back to a validation whose first batch was begun and not finished.

    Lightning would go on with the rest of a validation that was stopped and forget its first part.
    """
    nothing = dict.fromkeys(_COUNTS, 0)
    begun = {"total": nothing | {"ready": 1, "started": 1}, "current": nothing, "is_last_batch": False}
    checkpoint["loops"]["fit_loop"][_VALIDATION] = begun


def count_epoch_as_begun(checkpoint: dict[str, Any]) -> None:
    """Let a checkpoint that is written within an epoch say so.

    A run that continues from the end of an epoch counts the next one only at its end: stopped before, it would begin
    that epoch again, in the middle of the data.
    """
    progress = checkpoint["loops"]["fit_loop"]["epoch_progress"]
    for part in ("total", "current"):
        begun = max(progress[part]["ready"], progress[part]["processed"] + 1)
        progress[part] = progress[part] | {"ready": begun, "started": begun}


def complete_validation(checkpoint: dict[str, Any]) -> None:
    """Let a run go on after its last validation.

    Lightning counts all batches so far. Where these counts are not even, as in a run that was once stopped in a
    validation, it would repeat that validation wherever it continues.
    """
    loop = checkpoint["loops"]["fit_loop"]
    loop[_VALIDATION] = loop[_VALIDATION] | {"total": dict.fromkeys(_COUNTS, loop[_VALIDATION]["total"]["completed"])}


def load_as(cls: type[Model], file: Path | IO[bytes], map_location: Any) -> Model:
    """Load a checkpoint as this class; by default it may name a function that imports and builds another."""
    # Lightning's wrapper reads the source of every frame above to find a call of TorchScript's; its function does not.
    wrapper: Any = cls.load_from_checkpoint
    model: Model = wrapper.__func__(cls, file, map_location, weights_only=True, _instantiator=None)
    return model


def log_offline(logger: "WandbLogger") -> None:
    """Let a logger whose run could not start log to files; its mode is an argument of the constructor alone."""
    logger._wandb_init["mode"] = "offline"
