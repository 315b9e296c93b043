"""Official layouts as long as the published ones, with nothing in them: black pictures in files without content."""

from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from datamodules import Falcor3DDataModule, Isaac3DDataModule, cars3d, celeba, chairs, mpi3d, numbered, smallnorb
from datamodules.sources import MemoryMapped
from tests.helpers.datasets import mnist
from tests.helpers.datasets.smallnorb import matrix_bytes

CELEBA = (162_770, 19_867, 19_962)
FACES = [f"{number:06d}.jpg" for number in range(1, sum(CELEBA) + 1)]
CHAIRS, VIEWS = 1393, 62
CARS = 183


def write(folder: Path) -> Path:
    """CelebA's split, names of all chairs and cars, labels of Isaac3D, Falcor3D and Small NORB, and MNIST's files."""
    (folder / "celeba").mkdir(parents=True)
    parts = "".join(f"{name} {part}\n" for name, part in zip(FACES, np.repeat([0, 1, 2], CELEBA), strict=True))
    (folder / "celeba" / "list_eval_partition.txt").write_text(parts)
    for model in range(CHAIRS):
        renders = folder / "rendered_chairs" / f"{model:032x}" / "renders"
        renders.mkdir(parents=True)
        for view in range(VIEWS):
            (renders / f"image_{view:03d}_p{20 + 10 * (view % 2):03d}_t{view // 2:03d}_r096.png").touch()
    for numbered_class in (Isaac3DDataModule, Falcor3DDataModule):
        (folder / numbered_class.folder_name / "images").mkdir(parents=True)
        sizes = [factor.size for factor in numbered_class.factors]
        grid = np.indices(sizes, dtype=np.float32).reshape(len(sizes), -1).T
        with (folder / numbered_class.folder_name / numbered_class.labels_name).open("wb") as file:
            np.save(file, grid / np.maximum(np.array(sizes, np.float32) - 1, 1))
    (folder / mpi3d.FILES["toy"]).touch()
    (folder / "cars").mkdir()
    for car in range(CARS):
        (folder / "cars" / f"car_{car:03d}_mesh.mat").touch()
    small_norb(folder / "smallnorb")
    for name in ("MNIST", "FashionMNIST"):
        for prefix, count in (("train", 60_000), ("t10k", 10_000)):
            pictures = torch.zeros(count, 28, 28, dtype=torch.uint8)
            mnist.write(folder / name / "raw", prefix, pictures, torch.arange(count) % 10)
    return folder


def small_norb(folder: Path) -> None:
    """The labels of both parts, and no pictures."""
    folder.mkdir()
    for part, toys in ((smallnorb.TRAINING, (4, 6, 7, 8, 9)), (smallnorb.TESTING, (0, 1, 2, 3, 5))):
        sizes = (5, len(toys), 9, 18, 6)
        category, toy, elevation, azimuth, lighting = np.indices(sizes, dtype=np.int32).reshape(len(sizes), -1)
        info = np.stack([np.array(toys, np.int32)[toy], elevation, 2 * azimuth, lighting], axis=1)
        for kind, data in (("dat", b""), ("cat", matrix_bytes(category)), ("info", matrix_bytes(info))):
            (folder / f"{part}-{kind}.mat").write_bytes(data)


class FullLength:
    """Lets datamodules take these layouts."""

    def __init__(self, folder: Path) -> None:
        self.folder = write(folder)
        attributes = torch.randint(0, 2, (sum(CELEBA), len(celeba.ATTRIBUTES)))
        self.records = SimpleNamespace(filename=FACES, attr=attributes, attr_names=celeba.ATTRIBUTES)

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Pictures become holes in a file, CelebA's lists random; names, splits and labels are the datamodules' own."""
        monkeypatch.setattr(celeba.CelebADataModule, "_records", self.records)
        for module in (celeba, chairs, numbered):
            monkeypatch.setattr(module, "cached_pictures", self.black)
        for module in (mpi3d, cars3d, smallnorb):
            monkeypatch.setattr(module, "cached", self.hole)

    def black(self, folder: Path, root: Path, names: Any, image_shape: tuple[int, int, int], _: Any) -> MemoryMapped:
        """As many black pictures as there are names."""
        return self.hole(folder, {}, (len(names), *image_shape), None)

    def hole(self, folder: Path, origin: Any, shape: tuple[int, int, int, int], _: Any) -> MemoryMapped:
        """A cache of black pictures."""
        path = self.folder / f"{folder.name}-{shape[0]}"
        with path.open("ab") as file:
            file.truncate(prod(shape))
        return MemoryMapped(path, shape)
