"""Statistics of the batch without communication between ranks."""

from contextlib import ExitStack
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from vaezoo.distributed import local_statistics


class LocalStatistics(Callback):
    """Lets terms that are not linear in the batch read this rank's share of it in training.

    By default they gather the shares of all ranks, and so compute what one process computes with the whole batch. With
    this callback a covariance, total correlation, aggregate posterior or capacity is that of each rank's own images and
    DDP averages the gradients: less traffic, another objective. The run says so: its hyperparameters hold
    `statistics: local`. Evaluation stays global.
    """

    def __init__(self) -> None:
        self._step = ExitStack()

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Log the choice."""
        if stage == "fit":
            for logger in trainer.loggers:
                logger.log_hyperparams({"statistics": "local"})

    def on_train_batch_start(self, *args: Any) -> None:
        """Gather nothing from here on."""
        self._step.enter_context(local_statistics())

    def on_train_batch_end(self, *args: Any) -> None:
        """Gather as before."""
        self._step.close()

    def on_exception(self, *args: Any) -> None:
        """Gather as before."""
        self._step.close()
