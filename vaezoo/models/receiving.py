"""What stands between anybody's loader and a model's step."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.utilities import rank_zero_warn
from lightning.pytorch.utilities.model_helpers import is_overridden

from vaezoo.models.lightning_private import has_trainer
from vaezoo.nn.autoencoder import check_images
from vaezoo.types import AnyBatch, Batch

# Lightning says so for every datamodule. That its hooks come before the model's is what we want: steps convert as well.
warnings.filterwarnings("ignore", r"You have overridden `(transfer_batch_to_device|on_after_batch_transfer)` in")


class Receiver(LightningModule):
    """A LightningModule that makes a `Batch` of whatever a loader yields, before steps and callbacks see it."""

    image_shape: tuple[int, int, int]
    _is_first = True  # whether the next training batch is the first

    def receive(self, batch: AnyBatch) -> Batch:
        """A batch of float images of the model's shape; one that is so already stays as it is."""
        batch = Batch.of(batch).floats()
        check_images(batch.x, self.image_shape)
        return batch if batch.x.dtype == self.dtype else batch._replace(x=batch.x.to(self.dtype))

    def check_labels(self, batch: Batch, readers: Sequence[str]) -> None:
        """Refuse images alone for terms that read labels, by name; warn where the first batch has no label.

        Only the first batch is looked at, as a look may wait for the device.
        """
        name = type(self).__name__
        if readers and not batch.y.shape[1]:
            raise ValueError(
                f"{name}'s term {readers[0]!r} reads labels, and the loader yields images alone: "
                "let it yield (images, labels), with NaN for those that are unknown"
            )
        if readers and self._is_first and not batch.labelled.any():
            rank_zero_warn(f"the first batch holds no labelled image, so {name} learns no labels: set data.labels")
        self._is_first = False

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Move images and labels; which rows are labelled is found before, on the host, where nothing waits for it."""
        data = getattr(self.trainer, "datamodule", None) if has_trainer(self) else None
        if is_overridden("on_after_batch_transfer", data):
            return super().transfer_batch_to_device(batch, device, dataloader_idx)  # it expects what its loaders yield
        return Batch.of(batch).to(device)

    def on_after_batch_transfer(self, batch: AnyBatch, dataloader_idx: int) -> Batch:
        """Bytes become floats on the device: a quarter of the traffic."""
        return self.receive(batch)
