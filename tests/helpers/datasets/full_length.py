"""Official layouts as long as the published ones, with nothing in them: black pictures in files without content."""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from datamodules import Isaac3DDataModule, celeba, chairs, isaac3d
from datamodules.sources import MemoryMapped
from tests.helpers.datasets import mnist
from tests.helpers.datasets.celeba import table, take_any_checksum

CELEBA = (162_770, 19_867, 19_962)
CHAIRS, VIEWS = 1393, 62


def write(folder: Path) -> Path:
    """CelebA's lists, the names of all chairs, Isaac3D's labels, and MNIST's files."""
    root, total = folder / "celeba", sum(CELEBA)
    (root / "img_align_celeba").mkdir(parents=True)
    attributes = np.random.default_rng(0).choice([-1, 1], (total, len(celeba.ATTRIBUTES)))
    (root / "list_attr_celeba.txt").write_text(table(attributes, " ".join(celeba.ATTRIBUTES), 2))
    (root / "list_eval_partition.txt").write_text(table(np.repeat([0, 1, 2], CELEBA)[:, None], width=1))
    for name in ("identity_CelebA", "list_bbox_celeba", "list_landmarks_align_celeba"):
        (root / f"{name}.txt").write_text(table([[0]], "" if name.startswith("identity") else "header"))
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
    """Lets datamodules take these layouts; what is slow to read is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = write(folder)
        self.records: Any = None

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Pictures become holes in a file; names, lists, splits and labels are the datamodules' own."""
        take_any_checksum(monkeypatch)
        for module in (celeba, chairs, isaac3d):
            monkeypatch.setattr(module, "cached_pictures", self.black)
        read: Any = celeba.CelebADataModule._records.func  # type: ignore[attr-defined]

        def records(data: celeba.CelebADataModule) -> Any:
            self.records = self.records or read(data)
            return self.records

        monkeypatch.setattr(celeba.CelebADataModule, "_records", cached_property(records))
        celeba.CelebADataModule._records.__set_name__(celeba.CelebADataModule, "_records")  # type: ignore[attr-defined]

    def black(self, folder: Path, root: Path, names: Any, image_shape: tuple[int, int, int], _: Any) -> MemoryMapped:
        """As many black pictures as there are names."""
        path = self.folder / f"{folder.name}-{len(names)}"
        with path.open("ab") as file:
            file.truncate(len(names) * int(np.prod(image_shape)))
        return MemoryMapped(path, (len(names), *image_shape))
