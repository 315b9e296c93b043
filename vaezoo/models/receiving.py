"""What stands between anybody's loader and a model's step."""

import warnings
from typing import Any

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.utilities.model_helpers import is_overridden

from vaezoo.models.lightning_private import has_trainer
from vaezoo.types import AnyBatch, Batch

# Lightning says so for every datamodule. That its hooks come before the model's is what we want: steps convert as well.
warnings.filterwarnings("ignore", r"You have overridden `(transfer_batch_to_device|on_after_batch_transfer)` in")


class Receiver(LightningModule):
    """A LightningModule that makes a `Batch` of whatever a loader yields, before steps and callbacks see it."""

    image_shape: tuple[int, int, int]

    def receive(self, batch: AnyBatch) -> Batch:
        """A batch of float images of the model's shape; one that is so already stays as it is."""
        batch = Batch.of(batch).floats()
        if batch.x.shape[1:] != self.image_shape:
            raise ValueError(
                f"images are {tuple(batch.x.shape[1:])}, the model's image_shape (channels, height, width) is "
                f"{self.image_shape}: resize the images, or build the model for them"
            )
        return batch if batch.x.dtype == self.dtype else batch._replace(x=batch.x.to(self.dtype))

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Move images and labels; which rows are labelled is found before, on the host, where nothing waits for it."""
        data = getattr(self.trainer, "datamodule", None) if has_trainer(self) else None
        if is_overridden("on_after_batch_transfer", data):
            return super().transfer_batch_to_device(batch, device, dataloader_idx)  # it expects what its loaders yield
        return Batch.of(batch).to(device)

    def on_after_batch_transfer(self, batch: AnyBatch, dataloader_idx: int) -> Batch:
        """Bytes become floats on the device: a quarter of the traffic."""
        return self.receive(batch)
