"""Progress bar with the loss, its terms and images a second."""

import time
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import TQDMProgressBar

from vaezoo.types import AnyBatch, Batch


class ThroughputBar(TQDMProgressBar):
    """Lightning's bar with the throughput of this process.

    Args:
        refresh_rate: Batches between two updates; each update waits for the device.
    """

    def __init__(self, refresh_rate: int = 20) -> None:
        super().__init__(refresh_rate=refresh_rate)
        self._images = 0
        self._since = 0.0
        self._rate = 0

    def on_train_start(self, *args: Any) -> None:
        """Start the clock."""
        self._since = time.perf_counter()
        super().on_train_start(*args)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: AnyBatch, batch_idx: int
    ) -> None:
        """Count the images of the batch."""
        self._images += len(Batch.of(batch).x)
        super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)

    def get_metrics(
        self, trainer: Trainer, pl_module: LightningModule
    ) -> dict[str, int | str | float | dict[str, float]]:
        """Loss, terms and images a second since the last update."""
        metrics = super().get_metrics(trainer, pl_module)
        metrics.pop("v_num", None)
        now = time.perf_counter()
        if self._images:
            self._rate = round(self._images / (now - self._since))
            self._images, self._since = 0, now
        metrics["img/s"] = self._rate
        return metrics
