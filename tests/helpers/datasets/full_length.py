"""Official layouts as long as the published ones, with nothing in them: black pictures in files without content."""

from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from datamodules import Isaac3DDataModule, celeba, chairs, isaac3d
from datamodules.sources import MemoryMapped
from tests.helpers.datasets import mnist

CELEBA = (162_770, 19_867, 19_962)
FACES = [f"{number:06d}.jpg" for number in range(1, sum(CELEBA) + 1)]
CHAIRS, VIEWS = 1393, 62


def write(folder: Path) -> Path:
    """CelebA's split, the names of all chairs, Isaac3D's labels, and MNIST's files."""
    (folder / "celeba").mkdir(parents=True)
    parts = "".join(f"{name} {part}\n" for name, part in zip(FACES, np.repeat([0, 1, 2], CELEBA), strict=True))
    (folder / "celeba" / "list_eval_partition.txt").write_text(parts)
    for model in range(CHAIRS):
        renders = folder / "rendered_chairs" / f"{model:032x}" / "renders"
        renders.mkdir(parents=True)
        for view in range(VIEWS):
            (renders / f"image_{view:03d}_p{20 + 10 * (view % 2):03d}_t{view // 2:03d}_r096.png").touch()
    (folder / "Isaac3D_down128" / "images").mkdir(parents=True)
    sizes = [factor.size for factor in Isaac3DDataModule.factors]
    grid = np.indices(sizes, dtype=np.float32).reshape(len(sizes), -1).T
    np.save(folder / "Isaac3D_down128" / "labels.npy", grid / np.maximum(np.array(sizes, np.float32) - 1, 1))
    for name in ("MNIST", "FashionMNIST"):
        for prefix, count in (("train", 60_000), ("t10k", 10_000)):
            pictures = torch.zeros(count, 28, 28, dtype=torch.uint8)
            mnist.write(folder / name / "raw", prefix, pictures, torch.arange(count) % 10)
    return folder


class FullLength:
    """Lets datamodules take these layouts."""

    def __init__(self, folder: Path) -> None:
        self.folder = write(folder)
        attributes = torch.randint(0, 2, (sum(CELEBA), len(celeba.ATTRIBUTES)))
        self.records = SimpleNamespace(filename=FACES, attr=attributes, attr_names=celeba.ATTRIBUTES)

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Pictures become holes in a file, CelebA's lists random; names, splits and labels are the datamodules' own."""
        monkeypatch.setattr(celeba.CelebADataModule, "_records", self.records)
        for module in (celeba, chairs, isaac3d):
            monkeypatch.setattr(module, "cached_pictures", self.black)

    def black(self, folder: Path, root: Path, names: Any, image_shape: tuple[int, int, int], _: Any) -> MemoryMapped:
        """As many black pictures as there are names."""
        path = self.folder / f"{folder.name}-{len(names)}"
        with path.open("ab") as file:
            file.truncate(len(names) * prod(image_shape))
        return MemoryMapped(path, (len(names), *image_shape))
