"""Grids of numbered image files with a table of labels: the layout of Isaac3D and Falcor3D (Nie et al., 2020)."""

from math import prod
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from datamodules.grids import GridDataModule, check_order
from datamodules.pictures import cached_pictures, resize, sized
from datamodules.sources import MemoryMapped
from vaezoo.runs.files import require_own_file


class NumberedPictures(GridDataModule):
    """A grid of images `images/000000.png` and so on, in grid order.

    Args:
        image_size: Height and width; images are resized bilinearly.
        options: As in `ImageDataModule`.
    """

    source = "file"
    folder_name: ClassVar[str]
    """Folder that the official archive unpacks to, below `data_dir`."""
    labels_name: ClassVar[str]
    """NumPy file of all labels, in that folder, floats (N, K)."""
    archive: ClassVar[str]
    """Name of the official archive on its page."""

    def __init__(self, image_size: int = 64, **options: Any) -> None:
        self.image_shape = sized(3, image_size)
        super().__init__(**options)
        self.folder = self.data_dir / self.folder_name

    def open(self) -> MemoryMapped:
        """The cache of the pictures."""
        if not (self.folder / "images").is_dir():
            raise FileNotFoundError(
                f"{self.folder / 'images'} is not there: fetch {self.archive} from "
                f"https://github.com/NVlabs/High-res-disentanglement-datasets and unpack it in {self.data_dir}"
            )
        self._check_labels()
        names = [f"images/{i:06d}.png" for i in range(prod(self.factor_sizes))]
        name = self.folder_name.partition("_")[0].lower()
        cache = self.data_dir / ".cache" / f"{name}-{self.image_shape[1]}"
        return cached_pictures(cache, self.folder, names, self.image_shape, self._prepare)

    def _prepare(self, picture: Image.Image) -> Image.Image:
        return resize(picture.convert("RGB"), self.image_shape)

    def _check_labels(self) -> None:
        """Check that the images are in grid order; labels are read for nothing else."""
        path = self.folder / self.labels_name
        require_own_file(path, self.folder)
        try:
            labels = np.load(path, allow_pickle=False)
            expected = (prod(self.factor_sizes), len(self.factors))
            if labels.shape != expected or labels.dtype.kind != "f":
                raise ValueError(f"it is {labels.dtype} {labels.shape}, not floats {expected}")
            check_order(labels, self.factor_sizes)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{path} is missing: unpack the official archive again") from error
        except (EOFError, OSError, ValueError) as error:
            raise ValueError(f"{path} is not the official file ({error}): unpack the official archive again") from error
