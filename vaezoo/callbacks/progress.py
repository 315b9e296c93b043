"""Progress with the loss, its terms and images per second: a bar for terminals, lines for log files."""

import time
from collections.abc import Mapping
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ProgressBar, TQDMProgressBar

from vaezoo.models.logged import Logged
from vaezoo.types import AnyBatch, Batch


class ThroughputBar(TQDMProgressBar):
    """Lightning's bar with the throughput of this process.

    Args:
        refresh_rate: Batches between updates. Each update syncs with the device.
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
        """Loss, terms and images per second since the last update."""
        metrics = super().get_metrics(trainer, pl_module)
        metrics.pop("v_num", None)
        now = time.perf_counter()
        if self._images:
            self._rate = round(self._images / (now - self._since))
            self._images, self._since = 0, now
        metrics["img/s"] = self._rate
        return metrics


class ProgressLines(ProgressBar):
    """Prints a line at intervals and after each validation, for output to a file.

    Args:
        every_n_seconds: Seconds between lines. Each line syncs with the device.
    """

    refresh_rate = 0  # no step is logged for its sake: it asks the model

    def __init__(self, every_n_seconds: float = 60.0) -> None:
        super().__init__()
        self.every_n_seconds = every_n_seconds
        self._enabled = True
        self._images = 0
        self._since = 0.0

    def enable(self) -> None:
        """Print."""
        self._enabled = True

    def disable(self) -> None:
        """Print nothing, as on all ranks except rank 0."""
        self._enabled = False

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Start the clock."""
        self._images, self._since = 0, time.monotonic()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: AnyBatch, batch_idx: int
    ) -> None:
        """Print if a line is due."""
        self._images += len(Batch.of(batch).x)
        if (elapsed := time.monotonic() - self._since) >= self.every_n_seconds:
            latest = pl_module.latest if isinstance(pl_module, Logged) else {}
            values = {f"train/{name}": float(value) for name, value in latest.items()}
            self._say(trainer, values, f", {self._images / elapsed:,.0f} img/s")
            self._images, self._since = 0, time.monotonic()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Print the validation loss."""
        if trainer.state.fn == "fit" and not trainer.sanity_checking and "val/loss" in trainer.callback_metrics:
            self._say(trainer, {"val/loss": float(trainer.callback_metrics["val/loss"])})

    def _say(self, trainer: Trainer, values: Mapping[str, float], rate: str = "") -> None:
        if self._enabled:
            limit = f" of {trainer.max_steps:,}" if trainer.max_steps > 0 else ""
            shown = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
            print(f"epoch {trainer.current_epoch}, step {trainer.global_step:,}{limit}: {shown}{rate}", flush=True)
