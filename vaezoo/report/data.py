"""The first images of a run, from the datamodule that its configuration names."""

import torch
from lightning.pytorch import LightningDataModule

from vaezoo.report.strips import Images
from vaezoo.types import Batch

IMAGES = 64


def first_images(data: LightningDataModule) -> Images:
    """At most 64 validation images, or training images where nothing is held out.

    Args:
        data: A datamodule that is set up.
    """
    held_out = data.val_dataloader()
    batch = next(iter(held_out or data.train_dataloader()))
    batch = data.on_after_batch_transfer(data.transfer_batch_to_device(batch, torch.device("cpu"), 0), 0)
    return Images(Batch(*(field[:IMAGES] for field in batch)), "validation" if held_out else "training")
