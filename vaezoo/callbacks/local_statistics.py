"""Per-rank batch statistics, without communication."""

from contextlib import ExitStack
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from vaezoo.distributed import local_statistics


class LocalStatistics(Callback):
    """Computes batch-level terms per rank in training.

    By default they are gathered across ranks, so 2 × B/2 equals 1 × B. With this callback each rank computes its
    covariance, total correlation, aggregate posterior or capacity from its own images, and DDP averages the gradients:
    less traffic, but a different objective. The hyperparameters record it as `statistics: local`. Evaluation stays
    global.
    """

    def __init__(self) -> None:
        self._step = ExitStack()

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Log the choice."""
        if stage == "fit":
            for logger in trainer.loggers:
                logger.log_hyperparams({"statistics": "local"})

    def on_train_batch_start(self, *args: Any) -> None:
        """Stop gathering."""
        self._step.enter_context(local_statistics())

    def on_train_batch_end(self, *args: Any) -> None:
        """Gather as before."""
        self._step.close()

    def on_exception(self, *args: Any) -> None:
        """Gather as before."""
        self._step.close()
