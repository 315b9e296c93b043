"""Cars3D from small files in the official layout."""

import hashlib
import io
import tarfile
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.io import savemat

from datamodules import Cars3DDataModule, cars3d
from tests.helpers.datasets.cars3d import AZIMUTHS, CARS, ELEVATIONS, PIXELS, Small, write

TOTAL = ELEVATIONS * AZIMUTHS * len(CARS)


def pixels_of(module: Cars3DDataModule, *place: int) -> Any:
    return (module.images_at(torch.tensor([place]))[0] * 255).round().byte().permute(1, 2, 0).numpy()


def check_all(module: Cars3DDataModule) -> None:
    for car, name in enumerate(sorted(CARS)):
        for azimuth in range(AZIMUTHS):
            for elevation in range(ELEVATIONS):
                expected = PIXELS[name][:, :, :, azimuth, elevation]
                assert np.array_equal(pixels_of(module, elevation, azimuth, car), expected)


def test_the_official_layout() -> None:
    module = Cars3DDataModule()
    assert module.factor_sizes == (4, 24, 183)
    assert prod(module.factor_sizes) == 17_568
    assert module.factors_of(torch.tensor([1, 183, 24 * 183])).tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert module.image_shape == (3, 64, 64)


def test_pictures_are_found_by_their_factors_with_cars_sorted_by_name(tmp_path: Path) -> None:
    write(tmp_path)
    module = Small(data_dir=tmp_path, image_size=128, val_size=0, test_size=0)
    check_all(module)
    again = Small(data_dir=tmp_path, image_size=128)
    assert again.pictures.images(torch.arange(TOTAL)).equal(module.pictures.images(torch.arange(TOTAL)))


def test_pictures_are_resized(tmp_path: Path) -> None:
    cars = tmp_path / "cars"
    cars.mkdir()
    for number, name in enumerate(sorted(CARS)):
        savemat(cars / f"{name}.mat", {"im": np.full_like(PIXELS[name], 40 * number)})
    module = Small(data_dir=tmp_path)
    images = module.pictures.images(torch.arange(TOTAL))
    assert images.shape == (TOTAL, 3, 64, 64)
    assert images.flatten(1).float().mean(1).equal(40.0 * module.factors_of(torch.arange(TOTAL))[:, 2])


def test_a_missing_or_superfluous_car(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"cars holds 0 \.mat files, not 5: fetch http.*or set download=True"):
        Small(data_dir=tmp_path).prepare_data()
    cars = write(tmp_path)
    (cars / "car_003_mesh.mat").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=r"cars holds 6 \.mat files, not 5"):
        Small(data_dir=tmp_path).prepare_data()


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "shape", "type", "name", "bytes"])
def test_a_damaged_car(tmp_path: Path, damage: str) -> None:
    path = write(tmp_path) / f"{CARS[2]}.mat"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    raw = {"cut": data[:5000], "empty": b"", "text": b"no MATLAB file" * 20, "bytes": data}
    arrays = {"shape": ("im", PIXELS[CARS[2]][:64]), "type": ("im", PIXELS[CARS[2]] / 255)}
    if damage in raw:
        path.write_bytes(raw[damage])
    else:
        name, pixels = arrays.get(damage, ("picture", PIXELS[CARS[2]]))
        savemat(path, {name: pixels})
    with pytest.raises(ValueError, match=r"car_199_mesh\.mat is not the official file \(.*unpack the official archive"):
        Small(data_dir=tmp_path).prepare_data()
    assert not (tmp_path / ".cache" / "cars3d-64").exists()


def test_a_link_that_leads_elsewhere(tmp_path: Path) -> None:
    path = write(tmp_path) / f"{CARS[0]}.mat"
    path.rename(tmp_path / "elsewhere.mat")
    path.symlink_to(tmp_path / "elsewhere.mat")
    with pytest.raises(ValueError, match=r"car_010_mesh\.mat leads out of"):
        Small(data_dir=tmp_path).prepare_data()


def test_the_archive_is_fetched_and_only_cars_are_taken_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    cars = write(there)
    archive = there / "nips2015-analogy-data.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(cars, "data/cars")
        for name in ("../outside.mat", "data/cars/../up.mat", "data/sprites/other.mat"):
            member = tarfile.TarInfo(name)
            member.size = 3
            tar.addfile(member, io.BytesIO(b"bad"))
        link = tarfile.TarInfo("data/cars/link.mat")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(link)
    monkeypatch.setattr(cars3d, "URL", archive.as_uri())
    monkeypatch.setattr(cars3d, "MD5", hashlib.md5(archive.read_bytes()).hexdigest())
    check_all(Small(data_dir=here, download=True, image_size=128))
    assert {path.stem for path in (here / "cars").iterdir()} == set(CARS)
    assert {path.name for path in tmp_path.iterdir()} == {"there", "here"}


def test_a_size_that_is_none() -> None:
    with pytest.raises(ValueError, match="image_size must be at least 1, not 0"):
        Cars3DDataModule(image_size=0)
