"""What SIGTERM and Ctrl-C do to a run."""

import os
import signal
import threading
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from vaezoo.models.lightning_private import accumulates, ask_to_stop


class StopOnSignal(Callback):
    """Stops training between two steps when SIGTERM or SIGINT arrives; `LastCheckpoint` saves there.

    Training ends with Lightning's `SIGTERMException` and `received` holds the signal. A second Ctrl-C kills the process
    at once. Lightning alone saves within the step that Ctrl-C interrupts, and lets ranks broadcast inside a signal's
    handler, between the collective calls of a step.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._pid = os.getpid()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take over both signals, once Lightning has set its own handlers; it gives them back in the end."""
        self.received, self._pid = None, os.getpid()
        if threading.current_thread() is threading.main_thread():  # no other may
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._note)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Stop after this batch if any rank was told to, unless gradients accumulate."""
        if not accumulates(trainer):
            self._stop(trainer)

    def on_validation_batch_end(self, trainer: Trainer, *args: Any, **kwargs: Any) -> None:
        """Stop a validation as well, where there is one process: several might each be at another batch."""
        if trainer.world_size == 1 and not trainer.sanity_checking and not accumulates(trainer):
            self._stop(trainer)

    def _note(self, number: int, frame: Any) -> None:
        self.received = self.received or number
        # Batch systems may send SIGTERM twice. The loader's workers have this handler from their parent: they go on
        # working for it until it ends them.
        if number == signal.SIGINT or os.getpid() != self._pid:
            signal.signal(number, signal.SIG_DFL)

    def _stop(self, trainer: Trainer) -> None:
        """Let Lightning's loops end, on all ranks after the same batch: these wait for each other there anyway."""
        stop = self.received is not None
        if trainer.world_size > 1:
            stop = trainer.strategy.reduce_boolean_decision(stop, all=False)
        if stop:
            ask_to_stop(trainer)
