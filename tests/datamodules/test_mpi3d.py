"""MPI3D from small files in the official layout."""

import io
from math import prod
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import torch

from datamodules import MPI3DDataModule, mpi3d
from tests.helpers.datasets.mpi3d import PIXELS, SIZES, TOTAL, Small, write


@pytest.mark.parametrize("subset", ["toy", "realistic", "real", "complex"])
def test_the_official_layout(subset: Any) -> None:
    module = MPI3DDataModule(subset)
    objects = 4 if subset == "complex" else 6
    assert module.factor_sizes == (objects, objects, 2, 3, 3, 40, 40)
    assert prod(module.factor_sizes) == (460_800 if subset == "complex" else 1_036_800)
    assert module.factors_of(torch.tensor([1, 40, 1600])).equal(torch.eye(7, dtype=torch.long)[[6, 5, 4]])
    assert module.factor_kinds[:2] == ("categorical", "categorical")


def test_pictures_are_found_by_their_factors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi3d, "STEP", 7)  # the last block is smaller
    write(tmp_path, "mpi3d_real.npz")
    module = Small("real", data_dir=tmp_path)
    assert len(module.pictures) == TOTAL
    grid = PIXELS.reshape(*SIZES, 64, 64, 3)  # as the official page reads it
    for place in np.ndindex(*SIZES):
        image = module.images_at(torch.tensor([place]))[0] * 255
        assert np.array_equal(image.round().byte().numpy(), grid[place].transpose(2, 0, 1))


def test_another_version_of_the_file_makes_a_new_cache(tmp_path: Path) -> None:
    for value in (1, 2):
        write(tmp_path, pixels=np.full_like(PIXELS, value))
        assert Small(data_dir=tmp_path).pictures.images(torch.tensor([5])).unique().tolist() == [value]


@pytest.mark.parametrize(
    ("pixels", "complaint"),
    [
        (PIXELS[:-1], r"images is uint8 \(47, 64, 64, 3\), not uint8 \(48, 64, 64, 3\)"),
        (PIXELS / 255, "images is float64"),
        (np.asfortranarray(PIXELS), "Fortran"),
        (np.array([{}], dtype=object), "images is object"),
    ],
)
def test_another_layout(tmp_path: Path, pixels: Any, complaint: str) -> None:
    write(tmp_path, pixels=pixels)
    with pytest.raises(ValueError, match=rf"mpi3d_toy\.npz is not the official file \(.*{complaint}.*fetch it again"):
        Small(data_dir=tmp_path).prepare_data()
    assert not (tmp_path / ".cache" / "mpi3d_toy").exists()


def test_another_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "mpi3d_toy.npz", pictures=PIXELS)
    with pytest.raises(ValueError, match=r"mpi3d_toy\.npz is not the official file \(.*images\.npy"):
        Small(data_dir=tmp_path).prepare_data()


def test_more_than_the_pictures(tmp_path: Path) -> None:
    array = io.BytesIO()
    np.save(array, PIXELS)
    with ZipFile(tmp_path / "mpi3d_toy.npz", "w") as archive:
        archive.writestr("images.npy", array.getvalue() + b"more")
    with pytest.raises(ValueError, match=r"mpi3d_toy\.npz is not the official file \(images goes on after the last"):
        Small(data_dir=tmp_path).prepare_data()


@pytest.mark.parametrize("damage", ["cut", "bytes", "empty"])
def test_a_damaged_file(tmp_path: Path, damage: str) -> None:
    np.savez(tmp_path / "mpi3d_toy.npz", images=PIXELS)
    path = tmp_path / "mpi3d_toy.npz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1  # one bit of a pixel: the archive's own checksum tells
    path.write_bytes({"cut": data[: len(data) // 2], "bytes": data, "empty": b""}[damage])
    with pytest.raises(ValueError, match=r"mpi3d_toy\.npz is not the official file \(.*delete it and fetch it again"):
        Small(data_dir=tmp_path).prepare_data()


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"mpi3d_toy\.npz is not there: fetch it from .* or set download=True"):
        MPI3DDataModule(data_dir=tmp_path).prepare_data()
    with pytest.raises(FileNotFoundError, match=r"real3d_complicated_shapes_ordered\.npz is not there: fetch .*set$"):
        MPI3DDataModule("complex", data_dir=tmp_path).prepare_data()


def test_wrong_subsets() -> None:
    with pytest.raises(ValueError, match="complex has no direct address"):
        MPI3DDataModule("complex", download=True)
    with pytest.raises(ValueError, match="subset must be one of toy, realistic, real, complex, not 'fake'"):
        MPI3DDataModule("fake")  # type: ignore[arg-type]


def test_a_missing_file_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").mkdir()
    write(tmp_path / "there", "mpi3d_real.npz")
    monkeypatch.setattr(mpi3d, "DIRECT", (tmp_path / "there").as_uri())
    module = Small("real", download=True, data_dir=tmp_path / "here")
    assert module.pictures.images(torch.tensor([3]))[0].numpy().tolist() == PIXELS[3].transpose(2, 0, 1).tolist()
