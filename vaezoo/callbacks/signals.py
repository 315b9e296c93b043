"""Handle SIGTERM and Ctrl-C."""

import os
import signal
import threading
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from vaezoo.models.lightning_private import accumulates, ask_to_stop


class StopOnSignal(Callback):
    """Stops training between two steps when SIGTERM or SIGINT arrives; `LastCheckpoint` saves there.

    Training ends with Lightning's `SIGTERMException`; `received` holds the signal. A second Ctrl-C kills the process at
    once. Lightning by itself would save in the middle of the interrupted step, and would broadcast inside the signal
    handler, between the collective calls of a step.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._pid = os.getpid()

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Handle both signals once Lightning has set its handlers; Lightning restores them at the end."""
        self.received, self._pid = None, os.getpid()
        if threading.current_thread() is threading.main_thread():  # no other may
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._note)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Stop after this batch if any rank got a signal, unless gradients accumulate."""
        if not accumulates(trainer):
            self._stop(trainer)

    def on_validation_batch_end(self, trainer: Trainer, *args: Any, **kwargs: Any) -> None:
        """Stop a validation too, with one process only: several may be at different batches."""
        if trainer.world_size == 1 and not trainer.sanity_checking and not accumulates(trainer):
            self._stop(trainer)

    def _note(self, number: int, frame: Any) -> None:
        self.received = self.received or number
        # Batch systems may send SIGTERM twice. The loader's workers have this handler from their parent: they go on
        # working for it until it ends them.
        if number == signal.SIGINT or os.getpid() != self._pid:
            signal.signal(number, signal.SIG_DFL)

    def _stop(self, trainer: Trainer) -> None:
        """End Lightning's loops on all ranks after the same batch, where ranks sync anyway."""
        stop = self.received is not None
        if trainer.world_size > 1:
            stop = trainer.strategy.reduce_boolean_decision(stop, all=False)
        if stop:
            ask_to_stop(trainer)
