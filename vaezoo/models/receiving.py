"""Convert batches of any DataLoader before the model's step."""

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
    """A LightningModule that turns whatever a loader yields into a `Batch`, before steps and callbacks see it."""

    image_shape: tuple[int, int, int]
    _is_first = True  # whether the next training batch is the first

    def receive(self, batch: AnyBatch) -> Batch:
        """Convert to a `Batch` of float images and check their shape."""
        batch = Batch.of(batch).floats()
        check_images(batch.x, self.image_shape)
        return batch if batch.x.dtype == self.dtype else batch._replace(x=batch.x.to(self.dtype))

    def check_labels(self, batch: Batch, readers: Sequence[str]) -> None:
        """Raise if a term needs labels and batches have none; warn if the first batch has no labelled row.

        Checks only the first batch: the check may sync with the device.
        """
        name = type(self).__name__
        if readers and not batch.y.shape[1]:
            raise ValueError(
                f"{name}'s term {readers[0]!r} reads labels, but the loader yields only images: "
                "let it yield (images, labels), with NaN for unknown labels"
            )
        if readers and self._is_first and not batch.labelled.any():
            rank_zero_warn(f"the first batch holds no labelled image, so {name} learns no labels: set data.labels")
        self._is_first = False

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Move images and labels. Labelled rows are found before, on the host, so nothing syncs."""
        data = getattr(self.trainer, "datamodule", None) if has_trainer(self) else None
        if is_overridden("on_after_batch_transfer", data):
            return super().transfer_batch_to_device(batch, device, dataloader_idx)  # it expects what its loaders yield
        return Batch.of(batch).to(device)

    def on_after_batch_transfer(self, batch: AnyBatch, dataloader_idx: int) -> Batch:
        """Convert bytes to floats on the device: a quarter of the traffic."""
        return self.receive(batch)
