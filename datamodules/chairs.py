"""3D Chairs: many models of chairs, seen from all around."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from datamodules.base import ImageDataModule
from datamodules.factors import Factor, FactorKind
from datamodules.pictures import cached_pictures, centre, resize
from datamodules.sources import MemoryMapped
from datamodules.splits import split

VIEW = re.compile(r"^(.+)/renders/image_\d+_p(\d+)_t(\d+)_r\d+\.png$", re.MULTILINE)
WHITE = 250  # from here on, a grey level is background
OFFICIAL = (1393, 2, 31)


class ChairsDataModule(ImageDataModule):
    """3D Chairs (Aubry et al., 2014): 1393 models from 31 azimuths and 2 elevations, as masks or in grey.

    The official archive is unpacked to `data_dir/rendered_chairs`. Factors are read from the names of the pictures that
    are there. The last fifth of the models, in the order of their names, is the test set as in DIP-VAE (Kumar et al.,
    2018); validation pictures are held out of the others. Departs from that paper: near-duplicates stay in.

    Args:
        image_size: Height and width of the prepared pictures.
        mask: White chairs on black, as in DIP-VAE; otherwise grey ones on white.
        crop: Share of the height and of the width that is kept, about the centre.
        options: As in `ImageDataModule`.
    """

    source = "file"

    def __init__(
        self,
        data_dir: str | Path = "data",
        image_size: int = 64,
        mask: bool = True,
        crop: float = 2 / 3,
        **options: Any,
    ) -> None:
        if image_size < 1:
            raise ValueError(f"image_size must be at least 1, not {image_size}")
        if not 0 < crop <= 1:
            raise ValueError(f"crop must be above 0 and at most 1, not {crop}")
        self.image_shape = (1, image_size, image_size)
        self.mask, self.crop = mask, crop
        self.folder = Path(data_dir) / "rendered_chairs"
        names = sorted(path.relative_to(self.folder).as_posix() for path in self.folder.glob("*/renders/*.png"))
        self.names = [name for name in names if VIEW.match(name)]
        self._table = _indices(self.names)
        sizes = self._table.amax(0).add(1).tolist() if self.names else OFFICIAL
        kinds: tuple[FactorKind, ...] = ("categorical", "ordered", "periodic")
        self.factors = tuple(map(Factor, ("model", "elevation", "azimuth"), sizes, kinds))
        super().__init__(data_dir=data_dir, test_size=0, **options)

    def open(self) -> MemoryMapped:
        """The cache of the pictures."""
        if not self.names:
            raise FileNotFoundError(
                f"{self.folder} holds no <model>/renders/image_*_p*_t*_r*.png: fetch rendered_chairs.tar from "
                f"https://www.di.ens.fr/willow/research/seeing3Dchairs and unpack it in {self.data_dir}"
            )
        kind = "mask" if self.mask else "grey"
        cache = self.data_dir / ".cache" / f"chairs-{kind}-{self.image_shape[1]}-{self.crop:.4g}"
        return cached_pictures(cache, self.folder, self.names, self.image_shape, self._prepare)

    def factors_of(self, ids: Tensor) -> Tensor:
        """Factor indices of images by id, (B, 3)."""
        return self._table[ids]

    def split_ids(self) -> tuple[Tensor, Tensor, Tensor]:
        """Ids of the training, validation and test images."""
        is_test = self._table[:, 0] >= self.factor_sizes[0] * 4 // 5
        rest = (~is_test).nonzero().flatten()
        train, val, _ = split(len(rest), self.val_size, 0, self.split_seed)
        return rest[train], rest[val], is_test.nonzero().flatten()

    def _prepare(self, picture: Image.Image) -> Image.Image:
        grey = centre(picture.convert("L"), round(self.crop * picture.height), round(self.crop * picture.width))
        if not self.mask:
            return resize(grey, self.image_shape)
        mask = resize(grey.point(lambda level: 255 * (level < WHITE)), self.image_shape)
        return mask.point(lambda share: 255 * (share >= 128))


def _indices(names: list[str]) -> Tensor:
    """Indices of model, elevation and azimuth from file names, (N, 3)."""
    views = np.array(VIEW.findall("\n".join(names))).reshape(-1, 3)
    return torch.stack([torch.from_numpy(np.unique(column, return_inverse=True)[1]) for column in views.T], dim=1)
