"""3D Chairs: chair models from many viewpoints."""

import os
import re
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from datamodules.base import ImageDataModule
from datamodules.factors import Factor, FactorKind
from datamodules.pictures import cached_pictures, centre, resize, sized
from datamodules.sources import MemoryMapped
from datamodules.splits import held_out_count, split

VIEW = re.compile(r"^(.+)/renders/image_\d+_p(\d+)_t(\d+)_r\d+\.png$", re.MULTILINE)
WHITE = 250  # from here on, a grey level is background
OFFICIAL = (1393, 2, 31)


class ChairsDataModule(ImageDataModule):
    """3D Chairs (Aubry et al., 2014): 1393 models from 31 azimuths and 2 elevations, in grey or as masks.

    Unpack the official archive to `data_dir/rendered_chairs`. Factors are read from the file names. The test set is a
    number of models; validation images come from the others. The papers' preparations:

    - JointVAE (Dupont, 2018): shaded grey on white, centre crop (the default). It trains on all but a few test chairs,
      which it does not name: use `test_models=1`, `val_size=0`.
    - DIP-VAE (Kumar et al., 2018): `mask=True`, the first 80 % of 809 models for training. Its list of models without
      near-duplicates is not published: pass one as `models_file`.

    Args:
        image_size: Height and width of the prepared pictures.
        mask: White chairs on black. Defaults to grey chairs on white.
        crop: Share of height and width kept by the centre crop.
        models_file: Text file with the folder name of one model per line. Only these are used, in this order. Defaults
            to all models, by name.
        test_models: Number of models held out for testing, the last ones: a count, or a fraction below 1; may be 0.
        options: As in `ImageDataModule`.
    """

    source = "file"

    def __init__(
        self,
        data_dir: str | Path = "data",
        image_size: int = 64,
        mask: bool = False,
        crop: float = 2 / 3,
        models_file: str | Path | None = None,
        test_models: int | float = 0.2,
        **options: Any,
    ) -> None:
        self.image_shape = sized(1, image_size)
        if not 0 < crop <= 1:
            raise ValueError(f"crop must be above 0 and at most 1, not {crop}")
        self.mask, self.crop, self.test_models = mask, crop, test_models
        self.folder = Path(data_dir) / "rendered_chairs"
        self.models_file = None if models_file is None else Path(models_file)
        # Many times faster than Path.glob, for 86,366 names.
        names = glob("*/renders/*.png", root_dir=self.folder)  # noqa: PTH207
        names = sorted(name.replace(os.sep, "/") for name in names)
        self.names = [name for name in names if VIEW.match(name)]
        if self.models_file is not None:
            self.names = _only(self.names, self.models_file)
        self._table = _indices(self.names, in_order=self.models_file is not None)
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
        some = "" if self.models_file is None else f"-{self.models_file.stem}"
        cache = self.data_dir / ".cache" / f"chairs-{kind}-{self.image_shape[1]}-{self.crop:.4g}{some}"
        return cached_pictures(cache, self.folder, self.names, self.image_shape, self._prepare)

    def factors_of(self, ids: Tensor) -> Tensor:
        """Factor indices of images by id, (B, 3)."""
        return self._table[ids]

    def split_ids(self) -> tuple[Tensor, Tensor, Tensor]:
        """Ids of the training, validation and test images."""
        models = self.factor_sizes[0]
        held_out = held_out_count(self.test_models, models, "test_models")
        if not 0 <= held_out < models:
            raise ValueError(f"test_models={self.test_models} leaves no training images of {models} models: lower it")
        is_test = self._table[:, 0] >= models - held_out
        rest = (~is_test).nonzero().flatten()
        train, val, _ = split(len(rest), self.val_size, 0, self.split_seed)
        return rest[train], rest[val], is_test.nonzero().flatten()

    def _prepare(self, picture: Image.Image) -> Image.Image:
        grey = centre(picture.convert("L"), round(self.crop * picture.height), round(self.crop * picture.width))
        if not self.mask:
            return resize(grey, self.image_shape)
        mask = resize(grey.point(lambda level: 255 * (level < WHITE)), self.image_shape)
        return mask.point(lambda share: 255 * (share >= 128))


def _only(names: list[str], models_file: Path) -> list[str]:
    """Pictures of the models that a file lists, model by model in its order."""
    try:
        models = models_file.read_text().split()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"models_file {models_file} cannot be read ({error}): give a text file") from error
    if not models:
        raise ValueError(f"models_file {models_file} is empty: give the folder name of one model a line")
    pictures: dict[str, list[str]] = {model: [] for model in models}
    for name in names:
        pictures.get(name.partition("/")[0], []).append(name)
    if missing := [model for model in models if names and not pictures[model]]:
        raise ValueError(f"models_file {models_file} names {missing[0]}, of which rendered_chairs holds no picture")
    return [name for views in pictures.values() for name in views]


def _indices(names: list[str], in_order: bool) -> Tensor:
    """Indices of model, elevation and azimuth from file names, (N, 3); models as they come, or by name."""
    views = np.array(VIEW.findall("\n".join(names))).reshape(-1, 3)
    models, elevations, azimuths = (np.unique(column, return_inverse=True)[1] for column in views.T)
    if in_order:
        models = np.cumsum(np.diff(models, prepend=models[:1]) != 0)
    return torch.stack([torch.from_numpy(column) for column in (models, elevations, azimuths)], dim=1)
