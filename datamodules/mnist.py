"""MNIST and FashionMNIST: small grey images of ten classes."""

from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import interpolate
from torchvision import datasets

from datamodules.base import ImageDataModule
from datamodules.factors import Factor, LabelForm
from datamodules.memory import InMemory
from datamodules.pictures import sized
from datamodules.splits import split
from vaezoo.runs.files import require_own_file

SIDE, CLASSES = 28, 10


class MNISTDataModule(ImageDataModule):
    """MNIST (LeCun et al., 1998): 60,000 + 10,000 handwritten digits, resized bilinearly and not binarised.

    Uses torchvision's files in `data_dir/MNIST/raw`. The official test set is the test split; validation images come
    from the official training set.

    Args:
        image_size: Height and width; the files hold 28.
        download: Let torchvision download missing files.
        label_form: As in `ImageDataModule`. Defaults to class indices, as classes have no order.
        options: As in `ImageDataModule`.
    """

    factors = (Factor("digit", 10, "categorical"),)
    source = "file"
    dataset: ClassVar[type[datasets.MNIST]] = datasets.MNIST

    def __init__(
        self, image_size: int = 32, download: bool = False, label_form: LabelForm = "index", **options: Any
    ) -> None:
        self.image_shape = sized(1, image_size)
        super().__init__(label_form=label_form, test_size=0, **options)
        self.download = download

    def open(self) -> InMemory:
        """Read and resize all pictures, the training files' first."""
        pictures, _, _ = self._official
        # With antialiasing, bytes come out as from PIL, which torchvision's transforms resize with.
        return InMemory(interpolate(pictures, self.image_shape[1:], mode="bilinear", antialias=True))

    def factors_of(self, ids: Tensor) -> Tensor:
        """Classes of images by id, (B, 1)."""
        _, classes, _ = self._official
        return classes[ids].unsqueeze(1)

    def split_ids(self) -> tuple[Tensor, Tensor, Tensor]:
        """Ids of the training, validation and test images."""
        pictures, _, first_test = self._official
        train, val, _ = split(first_test, self.val_size, 0, self.split_seed)
        return train, val, torch.arange(first_test, len(pictures))

    @cached_property
    def _official(self) -> tuple[Tensor, Tensor, int]:
        """Pictures (N, 1, 28, 28), classes (N,), and the first id of the test set."""
        train, test = self._read(train=True), self._read(train=False)
        return torch.cat([train.data, test.data]).unsqueeze(1), torch.cat([train.targets, test.targets]), len(train)

    def _read(self, train: bool) -> datasets.MNIST:
        folder = self.data_dir / self.dataset.__name__ / "raw"
        names = [Path(archive).stem for archive, _ in self.dataset.resources]
        missing = [name for name in names if not (folder / name).is_file()]
        if missing and not self.download:
            raise FileNotFoundError(f"{folder} holds no {missing[0]}: put the file there or set download=True")
        for name in names:
            require_own_file(folder / name, folder)
        try:
            files = self.dataset(self.data_dir, train=train, download=self.download)
            _check(files.data, files.targets)
        except (AssertionError, LookupError, RuntimeError, TypeError, ValueError) as error:
            if missing:
                raise  # torchvision says why it could not download
            prefix = "train" if train else "t10k"
            raise ValueError(
                f"a {prefix} file in {folder} is damaged ({error}): delete it, and set download=True to fetch it again"
            ) from error
        return files


def _check(pictures: Tensor, classes: Tensor) -> None:
    if pictures.shape[1:] != (SIDE, SIDE) or not len(pictures):
        raise ValueError(f"pictures of {tuple(pictures.shape)}, not (N, {SIDE}, {SIDE})")
    if classes.shape != (len(pictures),):
        raise ValueError(f"{len(pictures)} pictures but {len(classes)} labels")
    if not 0 <= int(classes.min()) <= int(classes.max()) < CLASSES:
        raise ValueError(f"labels from {int(classes.min())} to {int(classes.max())}, not 0 to {CLASSES - 1}")


class FashionMNISTDataModule(MNISTDataModule):
    """FashionMNIST (Xiao et al., 2017): 60,000 + 10,000 pictures of clothes, in MNIST's format.

    Uses torchvision's files in `data_dir/FashionMNIST/raw`. Takes the arguments of `MNISTDataModule`.
    """

    factors = (Factor("article", 10, "categorical"),)
    dataset = datasets.FashionMNIST
