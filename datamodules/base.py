"""Base class of all datamodules: splits, the labelled set, batched loading and conversion on the device."""

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from lightning.pytorch import LightningDataModule
from torch import Tensor

from datamodules.factors import Factored, LabelForm, choose
from datamodules.known_labels import KnownLabels
from datamodules.loader import BatchLoader, Epochs
from datamodules.memory import InMemory
from datamodules.sources import ImageSource
from datamodules.splits import balanced, count_of, hide, split
from vaezoo.runs.files import atomic_write
from vaezoo.runs.folder import RunFolder
from vaezoo.types import Batch, from_bytes

Split = Literal["train", "val", "test", "all"]
LabelledSet = Literal["balanced", "random", "first"]
EVALUATION_BATCH = 256  # nothing is kept for gradients: larger than in training
CPU_BATCH = 64  # activations of more images leave the cache, and the system clears their memory anew for every batch


class ImageDataModule(Factored, LightningDataModule):
    """Images with factors, split into training, validation and test sets, with labels for some of them.

    A training batch holds `batch_size` images from a stream of the whole training set. Labels come in one of two ways:

    - As a second stream, by default. Every batch adds `labelled_batch_size` labelled images, from a second stream that
      cycles through the labelled set. Rows of the first stream have no label, even if one is known.
    - Within the stream, at `labelled_batch_size=0`. No image is added; rows of the stream keep their labels if they
      have one. At `labels=1.0` all do.

    Training sees only the labels of the labelled set. Validation and test batches are fully labelled.

    Args:
        data_dir: Folder of the official files.
        batch_size: Images per batch on each rank.
        labels: Labelled training images: a count, or a fraction in (0, 1] of those that have labels. 0 and None mean no
            labels.
        labelled_set: How to choose them: equally many of every class ("balanced"), at random ("random"), or the first
            training images in file order ("first").
        labelled_factors: Factors to use as labels. Defaults to all.
        labelled_batch_size: Labelled images added to each training batch. Defaults to `batch_size`. At 0 the images of
            the stream keep their own labels.
        label_form: "rank" scales each factor to [0, 1]; "index" gives class indices; "onehot" one column per class.
        observed: Share of known labels of a labelled training image, drawn independently per label. The others are NaN.
        split_seed: Seed of the splits and of the labelled set.
        val_size: Images held out for validation: a count, or a fraction below 1 of all; may be 0.
        test_size: Images held out for testing, likewise. With both at 0, evaluation uses the training images.
        num_workers: Worker processes; 0 is best for data in memory.
        device_resident: Keep all images as bytes on the training device, read or rendered once. Batches then transfer
            only ids.
    """

    image_shape: tuple[int, int, int]
    source: Literal["file", "render"]
    """Where the pictures come from; recorded with every run."""

    def __init__(
        self,
        data_dir: str | Path = "data",
        batch_size: int = 64,
        labels: int | float | None = None,
        labelled_set: LabelledSet = "balanced",
        labelled_factors: list[str] | None = None,
        labelled_batch_size: int | None = None,
        label_form: LabelForm = "rank",
        observed: float = 1.0,
        split_seed: int = 0,
        val_size: int | float = 10_000,
        test_size: int | float = 10_000,
        num_workers: int = 0,
        device_resident: bool = False,
    ) -> None:
        super().__init__()
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        if labelled_batch_size is not None and labelled_batch_size < 0:
            raise ValueError(f"labelled_batch_size must be at least 0, not {labelled_batch_size}")
        if not 0 < observed <= 1:
            raise ValueError(f"observed must be above 0 and at most 1, not {observed}")
        if labelled_set not in get_args(LabelledSet):
            raise ValueError(f"labelled_set must be one of {', '.join(get_args(LabelledSet))}, not {labelled_set!r}")
        self.data_dir, self.observed, self.labelled_set = Path(data_dir), observed, labelled_set
        self.batch_size, self.labels, self.split_seed, self.num_workers = batch_size, labels, split_seed, num_workers
        self.labelled_batch_size = batch_size if labelled_batch_size is None else labelled_batch_size
        self.label_form, self.val_size, self.test_size = label_form, val_size, test_size
        self.labelled_factors = choose(self.factors, labelled_factors)
        self.device_resident = device_resident
        self._resident: InMemory | None = None
        self._training: BatchLoader | None = None

    def open(self) -> ImageSource:
        """Open the images, building a cache if needed. Errors say what to do."""
        raise NotImplementedError

    @cached_property
    def pictures(self) -> ImageSource:
        """All pictures, by id."""
        return self.open()

    def split_ids(self) -> tuple[Tensor, Tensor, Tensor]:
        """Ids of the training, validation and test images; random if there is no official split."""
        return split(len(self.pictures), self.val_size, self.test_size, self.split_seed)

    def prepare_data(self) -> None:
        """Build caches in one process before the others look for them."""
        _ = self.pictures

    def setup(self, stage: str | None = None) -> None:
        """Split the data and choose the labelled images. Their ids are saved in the run's folder."""
        self.save_hyperparameters({"dataset": type(self).__name__, "data_source": self.source})
        self.train_ids, self.val_ids, self.test_ids = self.split_ids()
        self.labelled_ids = self.train_ids[:0]
        if self.labels:  # neither None nor 0
            self.labelled_ids = self._choose_labelled(self.labels, self.with_labels(self.train_ids))
        sizes = self.label_sizes or [1] * self.label_size
        known = hide(self.labels_of(self.labelled_ids), sizes, self.observed, self.split_seed)
        self._known = KnownLabels(len(self.pictures), self.labelled_ids, known)
        self._save_labelled_ids()
        self._training = None

    def train_dataloader(self) -> BatchLoader:
        """Shuffled batches of all training images, with labels as the class describes."""
        if self._training is None:
            seed = int(os.environ.get("PL_GLOBAL_SEED", 0))
            epochs = Epochs(self.train_ids, self.batch_size, True, seed, self.labelled_ids, self.labelled_batch_size)
            self._training = self._loader(epochs, self._training_batch)
            if self.trainer is not None:
                self._training.limit = self.trainer.limit_train_batches
        return self._training

    def state_dict(self) -> dict[str, Any]:
        """Position in the training data. Lightning restores a loader's position only within an epoch."""
        return {} if self._training is None else self._training.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue with the next batch of the training data."""
        self.train_dataloader().load_state_dict(state_dict)

    def val_dataloader(self) -> BatchLoader | list[BatchLoader]:
        """Labelled validation images in order."""
        return self._evaluation(self.val_ids)

    def test_dataloader(self) -> BatchLoader | list[BatchLoader]:
        """Labelled test images in order."""
        return self._evaluation(self.test_ids)

    def predict_dataloader(self) -> BatchLoader | list[BatchLoader]:
        """The test images."""
        return self._evaluation(self.test_ids)

    @property
    def evaluation_split(self) -> Split:
        """Split used to score a trained model: test, or the next best if there is no test set."""
        return "test" if len(self.test_ids) else "val" if len(self.val_ids) else "train"

    def evaluation_batches(
        self, images: int, split: Split, seed: int, device: torch.device
    ) -> Iterator[tuple[Batch, Tensor]]:
        """Random images of a split on the device, with their labels and factors (see `values_of`).

        Args:
            images: Number of images, divided among ranks; at most the whole split.
            split: The split.
            seed: Seed of the draw.
            device: Device of images and labels.
        """
        everything = torch.arange(len(self.pictures))
        ids = {"train": self.train_ids, "val": self.val_ids, "test": self.test_ids, "all": everything}[split]
        if not len(ids):
            raise ValueError(f"{type(self).__name__} holds no {split} images: choose another split")
        ids = ids[torch.randperm(len(ids), generator=torch.Generator().manual_seed(seed))[:images]]
        epochs = Epochs(ids, CPU_BATCH if device.type == "cpu" else EVALUATION_BATCH, shuffle=False, seed=0)
        loader = self._loader(epochs, self._evaluation_batch)
        for (chosen, _), batch in zip(epochs.batches(0), loader, strict=True):
            moved = self.on_after_batch_transfer(self.transfer_batch_to_device(batch, device, 0), 0)
            yield moved, self.values_of(chosen).to(device)

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        """Move images and labels. The mask stays on the host, so indexing with it needs no device sync."""
        return batch.to(device)

    def on_after_batch_transfer(self, batch: Batch, dataloader_idx: int) -> Batch:
        """Convert bytes to floats in [0, 1] on the device: a quarter of the traffic."""
        x = self._resident_on(batch.x.device).images(batch.x) if self.device_resident else batch.x
        return batch._replace(x=from_bytes(x))

    def _choose_labelled(self, amount: int | float, ids: Tensor) -> Tensor:
        if not len(ids):
            raise ValueError(f"labels={amount}, but no training image has a label: leave labels out, or give some")
        count = count_of(amount, len(ids), "labels")
        if self.labelled_set == "first":
            return ids[:count]
        cells = self.cells_of(ids) if self.labelled_set == "balanced" else torch.zeros_like(ids)
        return ids[balanced(cells, count, self.split_seed)]

    def _evaluation(self, ids: Tensor) -> BatchLoader | list[BatchLoader]:
        if not len(ids):
            return []
        return self._loader(Epochs(ids, self.batch_size, shuffle=False, seed=0), self._evaluation_batch)

    def _loader(self, epochs: Epochs, fetch: Any) -> BatchLoader:
        workers = 0 if self.device_resident else self.num_workers  # ids alone need no help
        return BatchLoader(fetch, epochs, workers, pin_memory=torch.cuda.is_available())

    def _training_batch(self, ids: Tensor, labelled: int) -> Batch:
        # Beside labelled images, the stream of all data is unlabelled even where a label is known.
        hidden = len(ids) - labelled if self.labelled_batch_size else 0
        return Batch(self._fetch(ids), *self._known.of(ids, hidden))

    def _evaluation_batch(self, ids: Tensor, labelled: int) -> Batch:
        labels = self.labels_of(ids)
        return Batch(self._fetch(ids), labels, ~labels.isnan().all(1))

    def _fetch(self, ids: Tensor) -> Tensor:
        return ids if self.device_resident else self.pictures.images(ids)

    def _resident_on(self, device: torch.device) -> InMemory:
        if self._resident is None or self._resident.store.device != device:
            self._resident = InMemory.copy_of(self.pictures, self.image_shape, device)
        return self._resident

    def _save_labelled_ids(self) -> None:
        folder = self.trainer.log_dir if self.trainer is not None else None  # a collective call: on every rank
        if folder is not None and len(self.labelled_ids) and self.trainer is not None and self.trainer.is_global_zero:
            with atomic_write(RunFolder(Path(folder)).labelled_ids) as draft, draft.open("wb") as file:
                np.save(file, self.labelled_ids.numpy(), allow_pickle=False)
