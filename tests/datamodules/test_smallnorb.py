"""Small NORB from small files in the official layout."""

import gzip
import hashlib
from collections import Counter
from math import prod
from pathlib import Path

import numpy as np
import pytest
import torch

from datamodules import SmallNORBDataModule, smallnorb
from datamodules.smallnorb import TESTING, TRAINING
from tests.helpers.datasets.smallnorb import PIXELS, SIZES, Small, matrix_bytes, write

TOTAL = prod(SIZES) * 4


def test_the_official_layout() -> None:
    module = SmallNORBDataModule()
    assert module.factor_sizes == (5, 9, 18, 6)
    assert prod(module.factor_sizes) * module.toys == 48_600
    assert module.factor_kinds == ("categorical", "ordered", "periodic", "categorical")
    ids = torch.tensor([9, 10, 60, 1080, 9720])  # ten toys at each of 6 lights, 18 azimuths, 9 elevations
    assert module.factors_of(ids).tolist() == [[0] * 4, [0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]]
    assert len(smallnorb.MD5) == 6


@pytest.mark.parametrize("packed", [True, False])
def test_pictures_are_found_by_their_factors(tmp_path: Path, packed: bool) -> None:
    write(tmp_path, packed)
    module = Small(data_dir=tmp_path, image_size=96)
    assert len(module.pictures) == TOTAL
    images = module.pictures.images(torch.arange(TOTAL)).numpy().reshape(*SIZES, 4, 96, 96)
    assert np.array_equal(images, PIXELS[..., 0, :, :])  # of the first camera
    for place in np.ndindex(*SIZES):
        image = module.images_at(torch.tensor([place]))[0, 0] * 255
        assert np.array_equal(image.round().byte().numpy(), PIXELS[(*place, 0, 0)])


def test_toys_share_factors_and_scores_see_them_all(tmp_path: Path) -> None:
    write(tmp_path)
    module = Small(data_dir=tmp_path, val_size=0, test_size=0, labels=8, labelled_factors=["category", "lighting"])
    module.setup()
    factors = [tuple(row) for row in module.factors_of(torch.arange(TOTAL)).tolist()]
    assert set(Counter(factors).values()) == {4}
    assert module.pictures.images(torch.arange(2)).shape == (2, 1, 64, 64)
    batches, found = zip(*module.evaluation_batches(TOTAL, "train", 0, torch.device("cpu")), strict=True)
    assert sorted(map(tuple, torch.cat(found).tolist())) == sorted(factors)
    assert torch.cat([batch.y for batch in batches]).shape == (TOTAL, 2)
    assert Counter(map(tuple, module.factors_of(module.labelled_ids)[:, [0, 3]].tolist())) == Counter(
        {(c, light): 2 for c in range(2) for light in range(2)}
    )


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"training-dat\.mat is not there, nor packed: fetch it from .* or set download=True"
    ):
        Small(data_dir=tmp_path).prepare_data()


def replace(files: Path, kind: str, data: bytes) -> None:
    (files / f"{TRAINING}-{kind}.mat.gz").write_bytes(data)


def test_files_of_another_layout(tmp_path: Path) -> None:
    files = write(tmp_path)
    count = TOTAL // 2
    info = np.zeros((count, 4), np.int32)
    odd = info.copy()
    odd[3, 2] = 1
    wrong = {
        "cut off": ("info", gzip.compress(matrix_bytes(info)[:-1])),
        "no matrix of int32 with 2 dimensions": ("info", gzip.compress(matrix_bytes(info[0]))),
        "no matrix of int32": ("info", gzip.compress(b"MATLAB 5.0 MAT-file")),
        "azimuths are not": ("info", gzip.compress(matrix_bytes(odd))),
        "invalid entry": ("info", gzip.compress(matrix_bytes(info + 8))),
        "its packing is damaged": ("info", matrix_bytes(info)),
        "it goes on after": ("info", gzip.compress(matrix_bytes(info) + b"x")),
        "broadcast": ("info", gzip.compress(matrix_bytes(info[:5]))),
    }
    for complaint, (kind, data) in wrong.items():
        replace(files, kind, data)
        with pytest.raises(ValueError, match=rf"training-{kind}\.mat\.gz is not the official file \(.*{complaint}"):
            Small(data_dir=tmp_path).prepare_data()
    replace(files, "info", gzip.compress(matrix_bytes(info)))
    with pytest.raises(
        ValueError, match=r"smallnorb holds 96 pictures that are not the 96 of the official files, each"
    ):
        Small(data_dir=tmp_path).prepare_data()


@pytest.mark.parametrize("damage", ["cut", "shape", "few", "checksum"])
def test_damaged_pictures(tmp_path: Path, damage: str) -> None:
    files = write(tmp_path)
    path = files / f"{TESTING}-dat.mat.gz"
    pictures = np.zeros((TOTAL // 2, 2, 96, 96), np.uint8)
    whole = path.read_bytes()
    raw = {
        "cut": whole[:-100],
        "shape": pictures[..., :64],
        "few": pictures[:-1],
        "checksum": whole[:-8] + bytes(4) + whole[-4:],
    }[damage]
    path.write_bytes(raw if isinstance(raw, bytes) else gzip.compress(matrix_bytes(raw), 1))
    with pytest.raises(ValueError, match=r"testing-dat\.mat\.gz is not the official file \("):
        Small(data_dir=tmp_path).prepare_data()


def test_missing_files_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = write(tmp_path / "there")
    sums = {path.name[:-7]: hashlib.md5(path.read_bytes()).hexdigest() for path in there.iterdir()}
    assert sums.keys() == smallnorb.MD5.keys()
    monkeypatch.setattr(smallnorb, "MD5", sums)
    monkeypatch.setattr(smallnorb, "PAGE", there.as_uri())
    module = Small(data_dir=tmp_path / "here", download=True)
    assert len(module.pictures) == TOTAL


def test_a_size_that_is_none() -> None:
    with pytest.raises(ValueError, match="image_size must be at least 1, not 0"):
        SmallNORBDataModule(image_size=0)
