"""Cars3D: car models from many viewpoints."""

import tarfile
from math import prod
from pathlib import Path, PurePosixPath
from shutil import copyfileobj, rmtree
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datamodules.cache import cached
from datamodules.download import download
from datamodules.factors import Factor
from datamodules.file_sets import inverse, origin_of_all, resized
from datamodules.grids import GridDataModule, check_array
from datamodules.pictures import sized
from datamodules.sources import Picked

URL = "http://www.scottreed.info/files/nips2015-analogy-data.tar.gz"
MD5 = "4e866a7919c1beedf53964e6f7a23686"
SIDE = 128


class Cars3DDataModule(GridDataModule):
    """Cars3D (Reed et al., 2015): 17,568 pictures of 183 cars from 4 elevations and 24 azimuths.

    The official files are `data_dir/cars/*.mat`, one per car, with 128×128 pixels; cars are numbered by sorted file
    name. Each image size gets a cache, 216 MB at 64.

    Args:
        image_size: Height and width; images are resized bilinearly. disentanglement_lib uses Lanczos.
        download: Download and unpack the files if the folder is missing.
        val_size: As in `ImageDataModule`.
        test_size: As in `ImageDataModule`.
        options: As in `ImageDataModule`.
    """

    factors = (Factor("elevation", 4), Factor("azimuth", 24, "periodic"), Factor("car", 183, "categorical"))
    source = "file"

    def __init__(
        self,
        image_size: int = 64,
        download: bool = False,
        val_size: int | float = 0.1,
        test_size: int | float = 0.1,
        **options: Any,
    ) -> None:
        self.image_shape = sized(3, image_size)
        super().__init__(val_size=val_size, test_size=test_size, **options)
        self.folder, self.download = self.data_dir / "cars", download

    def open(self) -> Picked:
        """The cache of the pictures, numbered as the grid is."""
        if self.download and not self.folder.exists():
            archive = self.data_dir / PurePosixPath(URL).name
            download(URL, archive, MD5)
            _unpack(archive, self.folder)
        files = sorted(self.folder.glob("*.mat"))
        elevations, azimuths, cars = self.factor_sizes
        if len(files) != cars:
            raise FileNotFoundError(
                f"{self.folder} holds {len(files)} .mat files, not {cars}: fetch {URL} and move its folder data/cars "
                f"to {self.data_dir}, or set download=True"
            )
        cache = self.data_dir / ".cache" / f"cars3d-{self.image_shape[1]}"
        shape = (prod(self.factor_sizes), *self.image_shape)
        stored = cached(cache, origin_of_all(self.folder, files), shape, lambda: map(self._views, files))
        # Stored car by car, and of a car azimuth by azimuth.
        ids = np.arange(len(stored)).reshape(elevations, azimuths, cars).transpose(2, 1, 0).ravel()
        return Picked(stored, inverse(ids, len(stored), self.folder))

    def _views(self, path: Path) -> NDArray[np.uint8]:
        """All pictures of a car, elevations changing fastest, (azimuths · elevations, C, H, W)."""
        from scipy.io import loadmat

        elevations, azimuths, _ = self.factor_sizes
        try:
            pixels = loadmat(path, variable_names=["im"], appendmat=False)["im"]
            check_array("im", pixels.shape, pixels.dtype, (SIDE, SIDE, 3, azimuths, elevations), np.uint8)
        except Exception as error:  # scipy has no kind of error for damaged files
            reason = f"{type(error).__name__}: {error}"
            raise ValueError(
                f"{path} is not the official file ({reason}): unpack the official archive again"
            ) from error
        views = pixels.transpose(3, 4, 0, 1, 2).reshape(-1, SIDE, SIDE, 3)
        return resized(np.ascontiguousarray(views), self.image_shape)


def _unpack(archive: Path, folder: Path) -> None:
    """Take the files of cars out of the archive, and nothing else; the folder is there only when it is whole."""
    draft = folder.with_name(f"{folder.name}.part")
    rmtree(draft, ignore_errors=True)
    draft.mkdir()
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            if member.isfile() and path.parent == PurePosixPath("data/cars") and path.suffix == ".mat":
                with tar.extractfile(member) as source, (draft / path.name).open("wb") as target:  # type: ignore[union-attr]
                    copyfileobj(source, target)
    draft.rename(folder)
