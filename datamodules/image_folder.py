"""A folder of your own images, with labels from a table, from subfolder names, or without labels."""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.utilities import rank_zero_warn
from torch import Tensor

from datamodules.cache import notes_of
from datamodules.factor_table import BINS, FactorTable
from datamodules.factors import FactorKind
from datamodules.folder_labels import TRAIN, FolderLabels, class_names, read_labels
from datamodules.picture_files import Background, Fit, find_pictures, formats, prepared
from datamodules.pictures import Reading, cached_pictures, sized
from datamodules.sources import ImageSource, Picked
from datamodules.tabled import TabledDataModule

REMEDY = "replace or remove the picture, or leave out all that are broken with skip_broken: true"


class ImageFolderDataModule(TabledDataModule):
    """Your own images: every file below `data_dir` that Pillow reads, at any depth, of any size and mode.

    Ids number the files by path. Images are turned upright, put on the background if transparent, and resized to one
    size; 16 bits become 8. They are cached in `data_dir/.cache`, using all cores. The cache is rebuilt when a file's
    name, size or time changes.

    Labels are optional. They come from subfolders (`folder_classes`) or from a table (`labels_file`) with one line per
    image: its path below `data_dir`, or its bare name if unique, and one column per factor. Numbers are ordered
    factors, text is categorical, an empty cell is unobserved. A column `split` with train, val and test splits the
    images. Images missing from the table have no labels; they are training images, like those with an empty `split`.

    Args:
        data_dir: Folder of the images.
        labels_file: CSV file with a header, or Parquet file. The path is relative to the current folder.
        image_size: Side, or height and width, of the resized images.
        grey: One channel instead of RGB.
        fit: How to fit other aspect ratios to `image_size`: "crop" fills it and cuts the rest, "pad" shows the whole
            image between bars, "stretch" changes the aspect ratio.
        background: Colour of bars and transparent areas.
        folder_classes: Use subfolder names as classes, as torchvision's `ImageFolder` does.
        file_column: Column of the table that names the file.
        factor_columns: Columns to use as factors. Defaults to all but `file_column` and `split`.
        categorical: Numeric columns that are classes.
        factor_bins: Equal-width bins for columns with more distinct values, for scores that need bins.
        skip_broken: Skip images that cannot be read, and report their number.
        val_size: As in `ImageDataModule`; ignored if the table has a column `split`.
        test_size: Likewise.
        options: As in `ImageDataModule`.
    """

    def __init__(
        self,
        data_dir: str | Path = "data",
        labels_file: str | Path | None = None,
        image_size: int | tuple[int, int] = 64,
        grey: bool = False,
        fit: Fit = "crop",
        background: Background = "black",
        folder_classes: bool = False,
        file_column: str = "file",
        factor_columns: list[str] | None = None,
        categorical: list[str] | None = None,
        factor_bins: int = BINS,
        skip_broken: bool = False,
        val_size: int | float = 0.1,
        test_size: int | float = 0.1,
        **options: Any,
    ) -> None:
        self.image_shape = sized(1 if grey else 3, image_size)
        if folder_classes and labels_file is not None:
            raise ValueError("folder_classes and labels_file both give labels: choose one")
        self.fit_mode, self.background, self.skip_broken = fit, background, skip_broken
        self.names = find_pictures(Path(data_dir))
        found = FolderLabels({}, None)
        if folder_classes:
            found = FolderLabels({"class": class_names(self.names, Path(data_dir))}, None)
        elif labels_file is not None:
            found = read_labels(Path(labels_file), Path(data_dir), self.names, file_column, factor_columns)
        self.parts = found.parts
        kinds: dict[str, FactorKind] = dict.fromkeys(categorical or (), "categorical")
        self.table = FactorTable.of(found.columns, len(self.names), kinds, factor_bins)
        self.factors = self.table.factors
        super().__init__(data_dir=data_dir, val_size=val_size, test_size=test_size, **options)

    def open(self) -> ImageSource:
        """The cache of the images, without broken ones."""
        channels, height, width = self.image_shape
        kind = f"{height}x{width}-{'grey' if channels == 1 else 'rgb'}-{self.fit_mode}-{self.background}"
        cache = self.data_dir / ".cache" / f"pictures-{kind}"
        prepare = partial(prepared, image_shape=self.image_shape, fit=self.fit_mode, background=self.background)
        reading = Reading(REMEDY, formats(), look_at_all=True, skip_broken=self.skip_broken)
        pictures = cached_pictures(cache, self.data_dir, self.names, self.image_shape, prepare, reading)
        broken = notes_of(cache)
        return self._without(broken, pictures) if broken else pictures

    def split_ids(self) -> tuple[Tensor, Tensor, Tensor]:
        """Ids of the training, validation and test images: the table's, or at random."""
        if self.parts is None:
            return super().split_ids()
        train, val, test = ((self.parts == part).nonzero().flatten() for part in range(3))
        if not len(train):
            raise ValueError(f"the column split leaves no training images: mark some as {TRAIN}")
        return train, val, test

    def _without(self, broken: dict[str, str], pictures: ImageSource) -> ImageSource:
        """Number the pictures that are not broken anew."""
        kept = torch.tensor([i for i, name in enumerate(self.names) if name not in broken], dtype=torch.long)
        first, reason = next(iter(broken.items()))
        said = f"{len(broken)} of {len(self.names)} pictures in {self.data_dir} are broken, {first} first ({reason})"
        if not len(kept):
            raise ValueError(f"{said}: none is left")
        rank_zero_warn(f"{said}; they are left out")
        self.names = [self.names[i] for i in kept.tolist()]
        self.table = self.table.at(kept)
        self.parts = None if self.parts is None else self.parts[kept]
        return Picked(pictures, kept)
