"""Checkpoints to resume interrupted runs from."""

import math
import time
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import proxy

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import GradientAccumulationScheduler, ModelCheckpoint, WeightAveraging
from lightning.pytorch.trainer.states import TrainerFn
from lightning.pytorch.utilities import rank_zero_warn

from vaezoo.models.lightning_private import (
    accumulates,
    begin_validation_again,
    complete_validation,
    count_epoch_as_begun,
    validates_now,
)
from vaezoo.runs.files import link
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.resuming import ACCUMULATING, STOPPED_EARLY

_NAMES = RunFolder(Path())
_STEPS_BETWEEN_QUESTIONS = 10
_LOSS, _UNSUPERVISED = "val/loss", "val/unsupervised"


class LastCheckpoint(ModelCheckpoint):
    """Saves `last.ckpt` every few steps or minutes, when training ends and when `StopOnSignal` stops it.

    Saves only between two optimizer steps, and after the validation if one is due, so a resumed run repeats the
    unbroken one exactly. An error within a step leaves the file unchanged. The checkpoint before is kept as
    `previous.ckpt`.

    Args:
        every_n_train_steps: Optimizer steps between saves.
        every_n_minutes: Save at least this often, for models with slow steps. None sets no limit.
    """

    def __init__(self, every_n_train_steps: int = 1000, every_n_minutes: float | None = 5.0) -> None:
        if every_n_train_steps < 1:
            raise ValueError(f"every_n_train_steps must be at least 1, not {every_n_train_steps}")
        if every_n_minutes is not None and not every_n_minutes > 0:
            raise ValueError(f"every_n_minutes must be above 0, or null, not {every_n_minutes}")
        super().__init__(
            filename=_NAMES.last.stem, every_n_train_steps=every_n_train_steps, enable_version_counter=False
        )
        self._interval, self._saved_step = every_n_train_steps, 0
        self._seconds, self._saved_at = (every_n_minutes or math.inf) * 60, 0.0
        self._due = False
        self._validate_again = False
        self._within_epoch = False

    @cached_property
    def state_key(self) -> str:
        """Lightning asks for it six times a step."""
        return super().state_key

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Ignore the state: the files of an earlier run lie in its own folder."""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Count from the resumed step, which is already saved."""
        for callback in trainer.callbacks:  # type: ignore[attr-defined]  # Lightning sets them from elsewhere
            if isinstance(callback, GradientAccumulationScheduler):  # which waits for the next epoch's start
                trainer.accumulate_grad_batches = callback.get_accumulate_grad_batches(trainer.current_epoch)
        self._saved_step, self._saved_at = trainer.global_step, time.monotonic()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save if it is due, if the run stops or after its last step; not while gradients accumulate."""
        self._within_epoch = True
        if not _fitting(trainer) or accumulates(trainer):
            return
        step = trainer.global_step
        self._due |= step != self._saved_step and (step % self._interval == 0 or self._time_is_up(trainer))
        self._due |= trainer.received_sigterm or step == trainer.max_steps
        if self._due and not validates_now(trainer):
            self._save(trainer)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save what was due before the validation: a run resumed from there would skip it."""
        if (self._due or trainer.received_sigterm) and _fitting(trainer):
            self._save(trainer)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Do not save. Lightning would, at the end of an epoch without validation."""
        self._within_epoch = False

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save the final state, unless the last step did. Records if a callback ended the run."""
        if (self._saved_step != trainer.global_step or _stopped_early(trainer)) and _fitting(trainer):
            self._save(trainer)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Save if a signal stopped a validation, so the resumed run starts it again."""
        if trainer.received_sigterm and trainer.validating and _fitting(trainer):
            for callback in trainer.callbacks:  # type: ignore[attr-defined]
                if isinstance(callback, WeightAveraging):  # the validation took the average for the weights
                    callback.on_validation_epoch_end(trainer, pl_module)
            self._validate_again = True
            self._save(trainer)
            self._validate_again = False

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Let only a stopped validation start again on resume; record if a callback ended the run."""
        (begin_validation_again if self._validate_again else complete_validation)(checkpoint)
        if self._within_epoch:
            count_epoch_as_begun(checkpoint)
        checkpoint[STOPPED_EARLY] = _stopped_early(trainer)
        checkpoint[ACCUMULATING] = self._within_epoch and accumulates(trainer)

    def _time_is_up(self, trainer: Trainer) -> bool:
        """Whether `every_n_minutes` have passed; ranks, whose clocks differ, agree now and then."""
        up = time.monotonic() - self._saved_at >= self._seconds
        if trainer.world_size == 1 or self._seconds == math.inf:
            return up
        asked = trainer.global_step % _STEPS_BETWEEN_QUESTIONS == 0
        return asked and trainer.strategy.reduce_boolean_decision(up, all=False)

    def _save(self, trainer: Trainer) -> None:
        assert self.dirpath is not None
        path = Path(self.dirpath) / _NAMES.last.name
        if trainer.is_global_zero and path.is_file() and self._saved_step != trainer.global_step:
            link(path, path.with_name(_NAMES.previous.name))
        self.best_model_path = self.last_model_path = str(path)
        trainer.save_checkpoint(path)
        self._saved_step, self._saved_at, self._due = trainer.global_step, time.monotonic(), False
        if trainer.is_global_zero:
            for logger in trainer.loggers:
                logger.after_save_checkpoint(proxy(self))  # loggers keep it: weakly, as Lightning's own callback


class BestCheckpoint(ModelCheckpoint):
    """Saves `best.ckpt`, the checkpoint with the lowest validation loss. A resumed run copies it to its own folder.

    If the loss reads labels, the model is selected by `val/unsupervised`, the loss without those terms: no protocol
    allows the labels of validation images.
    """

    def __init__(self) -> None:
        super().__init__(
            filename=_NAMES.best.stem,
            monitor=_LOSS,
            save_on_train_epoch_end=False,
            enable_version_counter=False,
        )

    @cached_property
    def state_key(self) -> str:
        """Same for every model and version, so the state is found before the metrics are known."""
        monitor, self.monitor = self.monitor, _LOSS
        try:
            return super().state_key
        finally:
            self.monitor = monitor

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save if this is the best. Scores of another loss term, as in runs of 0.1.0, are not compared."""
        monitor = _UNSUPERVISED if _UNSUPERVISED in trainer.callback_metrics else _LOSS
        if monitor != self.monitor and _fitting(trainer):
            self.monitor, self.best_k_models, self.best_model_score = monitor, {}, None
        super().on_validation_end(trainer, pl_module)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue with the best score so far. In a new folder Lightning forgets it and keeps a worse checkpoint."""
        if state_dict["best_model_score"] is None or self.dirpath is None:
            return
        # `read_checkpoint` lets the path mean the file beside the checkpoint, wherever that lies now.
        before = Path(state_dict["best_model_path"])
        if before.name != _NAMES.best.name or not before.is_file():
            rank_zero_warn(f"no {_NAMES.best.name} lies beside the checkpoint: the search for the best restarts here")
            return
        path = Path(self.dirpath) / _NAMES.best.name
        link(before, path)
        self.monitor = state_dict["monitor"]
        self.best_model_score = self.kth_value = state_dict["best_model_score"]
        self.best_model_path = self.kth_best_model_path = str(path)
        self.best_k_models = {str(path): state_dict["best_model_score"]}


def _stopped_early(trainer: Trainer) -> bool:
    """Whether a callback such as EarlyStopping ends the run here; not before min_steps and min_epochs."""
    enough = trainer.global_step >= (trainer.min_steps or 0) and trainer.current_epoch >= (trainer.min_epochs or 0)
    return trainer.should_stop and enough and not trainer.received_sigterm


def _fitting(trainer: Trainer) -> bool:
    dry = trainer.fast_dev_run  # type: ignore[attr-defined]  # Lightning sets it from elsewhere
    return trainer.state.fn == TrainerFn.FITTING and not trainer.sanity_checking and not dry
