"""Which values of a step are logged, and when."""

from collections.abc import Mapping
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor

from vaezoo.models.lightning_private import has_trainer, reads_training_values


class Logged(LightningModule):
    """A LightningModule that logs training values only in steps that a logger writes or a progress bar shows.

    Attributes:
        latest: Loss terms of this training batch by name, logged or not, on the model's device.
    """

    latest: Mapping[str, Tensor] = {}

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        """Forget the previous batch."""
        self.latest = {}

    def log_training(self, terms: Mapping[str, Tensor], details: Mapping[str, Tensor], size: int) -> None:
        """Keep the terms of a training loss; log them if anything reads them.

        Args:
            terms: The loss and its terms; also shown in the progress bar.
            details: Further values to log.
            size: Number of images.
        """
        self.latest = {**self.latest, **{name: value.detach() for name, value in terms.items()}}
        if has_trainer(self) and reads_training_values(self.trainer):
            # Lightning reads a bar's values again after every later step, and would wait for the device each time.
            host = torch.stack([value.detach() for value in terms.values()]).cpu()
            shown = dict(zip(terms, host, strict=True))
            self.log_dict(_named("train", shown), prog_bar=True, batch_size=size)
            self.log_dict(_named("train", details), batch_size=size)

    def log_evaluation(self, stage: str, values: Mapping[str, Tensor], size: int) -> None:
        """Log validation or test values, averaged over all images and ranks."""
        if has_trainer(self):
            self.log_dict(_named(stage, values), batch_size=size, sync_dist=True)


def _named(stage: str, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{stage}/{name}": value.detach() for name, value in values.items()}
