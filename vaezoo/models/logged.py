"""Which values of a step are logged, and when."""

from collections.abc import Mapping
from typing import Any

from lightning.pytorch import LightningModule
from torch import Tensor

from vaezoo.models.lightning_private import has_trainer, reads_training_values


class Logged(LightningModule):
    """A LightningModule whose training values are logged in the steps that are written or shown, and in no other.

    Attributes:
        latest: Summands of the loss in this training batch, by name, logged or not; on the model's device.
    """

    latest: Mapping[str, Tensor] = {}

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """Forget the batch before."""
        self.latest = {}

    def log_training(self, terms: Mapping[str, Tensor], details: Mapping[str, Tensor], size: int) -> None:
        """Keep the summands of a training loss, and log them where they are read.

        Args:
            terms: The loss and its summands, for the progress bar too.
            details: What else is known of them.
            size: Number of images.
        """
        self.latest = {**self.latest, **{name: value.detach() for name, value in terms.items()}}
        if has_trainer(self) and reads_training_values(self.trainer):
            self._send("train", terms, size, prog_bar=True)
            self._send("train", details, size)

    def log_evaluation(self, stage: str, values: Mapping[str, Tensor], size: int) -> None:
        """Log values of a validation or a test: their means over all images and ranks."""
        if has_trainer(self):
            self._send(stage, values, size, sync_dist=True)

    def _send(self, stage: str, values: Mapping[str, Tensor], size: int, **options: bool) -> None:
        named = {f"{stage}/{name}": value.detach() for name, value in values.items()}
        self.log_dict(named, batch_size=size, **options)
