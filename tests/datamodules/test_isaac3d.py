"""Isaac3D from small folders in the official layout."""

import os
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from datamodules.isaac3d import Isaac3DDataModule
from datamodules.sources import MemoryMapped
from tests.helpers.datasets.isaac3d import LABELS, PIXELS, TOTAL, Small, write

pytestmark = pytest.mark.xdist_group("isaac3d")  # one worker makes what all of them read


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that no test changes."""
    return write(tmp_path_factory.mktemp("isaac")).parent


def averaged(factor: int) -> Any:
    """Pictures (N, 3, H, W) smaller by a whole factor: PIL's triangle filter spans twice the factor."""
    taps = 1 - np.abs(np.arange(2 * factor) - factor + 0.5) / factor
    small = np.zeros((TOTAL, 128 // factor, 128 // factor, 3))
    weights = np.zeros((128 // factor, 128))
    for row in range(128 // factor):
        for tap, weight in enumerate(taps):
            column = row * factor - factor // 2 + tap
            if 0 <= column < 128:
                weights[row, column] = weight
    weights /= weights.sum(1, keepdims=True)
    small = np.einsum("ih,nhwc,jw->nijc", weights, PIXELS, weights, optimize=True)
    return small.transpose(0, 3, 1, 2)


def test_the_official_layout() -> None:
    module = Isaac3DDataModule(image_size=32)
    assert module.factor_sizes == (3, 8, 5, 4, 4, 4, 6, 4, 4)
    ids = torch.tensor([245760, 30720, 6144, 1536, 384, 96, 16, 4, 1])
    assert module.factors_of(ids).equal(torch.eye(9, dtype=torch.long))
    assert prod(module.factor_sizes) == 737_280
    assert module.image_shape == (3, 32, 32)
    assert module.source == "file"


@pytest.mark.parametrize("size", [64, 32])
def test_pictures_are_resized(whole: Path, size: int) -> None:
    module = Small(data_dir=whole, image_size=size)
    assert isinstance(module.pictures, MemoryMapped)
    images = module.pictures.images(torch.arange(TOTAL)).numpy()
    assert images.shape == (TOTAL, 3, size, size)
    assert np.abs(images - averaged(128 // size)).max() <= 1.01  # PIL rounds after each direction


def test_pictures_of_the_official_size_are_untouched(whole: Path) -> None:
    images = Small(data_dir=whole, image_size=128).pictures.images(torch.tensor([5, 2]))
    assert np.array_equal(images.numpy(), PIXELS[[5, 2]].transpose(0, 3, 1, 2))


def test_a_cache_for_each_size(whole: Path) -> None:
    for size in (16, 8):
        Small(data_dir=whole, image_size=size).prepare_data()
    assert {"isaac3d-8", "isaac3d-16"} <= {path.name for path in (whole / ".cache").iterdir()}


@pytest.mark.parametrize("keep_time", [False, True])
def test_a_changed_picture_makes_a_new_cache(tmp_path: Path, keep_time: bool) -> None:
    folder = write(tmp_path)
    time = (folder / "images" / "000001.png").stat().st_mtime_ns
    before = Small(data_dir=tmp_path, image_size=8).pictures.images(torch.arange(2))
    Image.new("RGB", (128, 128), (1, 2, 3)).save(folder / "images" / "000001.png")
    if keep_time:
        os.utime(folder / "images" / "000001.png", ns=(0, time))
    after = Small(data_dir=tmp_path, image_size=8).pictures.images(torch.arange(2))
    assert after[0].equal(before[0])
    assert after[1, :, 0, 0].tolist() == [1, 2, 3]


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"Isaac3D_down128/images is not there: fetch Isaac3D_128x128 from .*unpack it in"
    ):
        Isaac3DDataModule(data_dir=tmp_path).prepare_data()


@pytest.mark.parametrize("number", [0, 37])
def test_a_missing_picture(tmp_path: Path, number: int) -> None:
    path = write(tmp_path) / "images" / f"{number:06d}.png"
    path.unlink()
    with pytest.raises(FileNotFoundError, match=rf"images/{path.name} is missing: unpack the official archive again"):
        Small(data_dir=tmp_path).prepare_data()


@pytest.mark.parametrize("size", [0, 30, 20_000])
def test_a_truncated_picture(tmp_path: Path, size: int) -> None:
    path = write(tmp_path) / "images" / "000037.png"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"images/000037\.png cannot be used \(.*unpack the official archive again"):
        Small(data_dir=tmp_path).prepare_data()
    assert not (tmp_path / ".cache" / "isaac3d-64").exists()


def test_a_damaged_picture(tmp_path: Path) -> None:
    path = write(tmp_path) / "images" / "000037.png"
    data = bytearray(path.read_bytes())
    length = data.index(b"IDAT") - 4
    data[length : length + 4] = (100).to_bytes(4, "big")
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"images/000037\.png cannot be used \(broken PNG file"):
        Small(data_dir=tmp_path).prepare_data()


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        (LABELS[:-1], r"it is float32 \(71, 9\), not floats \(72, 9\)"),
        (LABELS.astype(int), "it is int64"),
        (LABELS[:, ::-1], "column 0 of the labels does not follow the official order"),
        (np.array([{}], dtype=object), "allow_pickle=False"),
    ],
)
def test_labels_of_another_layout(tmp_path: Path, labels: Any, complaint: str) -> None:
    write(tmp_path, labels)
    with pytest.raises(ValueError, match=rf"labels\.npy is not the official file \(.*{complaint}.*unpack"):
        Small(data_dir=tmp_path).prepare_data()


@pytest.mark.parametrize("size", [0, 5, 200])
def test_truncated_labels(tmp_path: Path, size: int) -> None:
    path = write(tmp_path) / "labels.npy"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"labels\.npy is not the official file \("):
        Small(data_dir=tmp_path).prepare_data()


def test_no_labels(tmp_path: Path) -> None:
    write(tmp_path, None)
    with pytest.raises(FileNotFoundError, match=r"labels\.npy is missing: unpack"):
        Small(data_dir=tmp_path).prepare_data()


def test_a_size_that_is_none() -> None:
    with pytest.raises(ValueError, match="image_size must be at least 1, not 0"):
        Isaac3DDataModule(image_size=0)
