"""Images of one's own in npy, npz and HDF5 files, with and without factors."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from datamodules import ArrayDataModule, arrays
from datamodules.factors import Factor
from tests.helpers.datasets import folder

PIXELS = np.random.default_rng(0).integers(0, 256, (10, 32, 40, 3), dtype=np.uint8)
FIRST = np.ascontiguousarray(PIXELS.transpose(0, 3, 1, 2))
FACTORS = np.array([[i, i % 3] for i in range(10)], dtype=np.float64)
FACTORS[4, 0] = np.nan
BOTH = (Factor("size", 9, "ordered"), Factor("shape", 3, "categorical"))


def write(path: Path, images: Any = PIXELS, **others: Any) -> Path:
    if path.suffix == ".npy":
        np.save(path, images)
    elif path.suffix == ".npz":
        np.savez_compressed(path, images=images, **others)
    else:
        with h5py.File(path, "w") as file:
            for name, values in {"images": images, **others}.items():
                file[name] = values
    return path


def data(path: Path, **options: Any) -> ArrayDataModule:
    module = ArrayDataModule(path.name, path.parent, **{"batch_size": 2, **options})
    module.prepare_data()
    module.setup()
    return module


def images(module: ArrayDataModule) -> Any:
    return module.pictures.images(torch.arange(10)).numpy()


@pytest.mark.parametrize("suffix", ["npy", "npz", "h5", "hdf5"])
@pytest.mark.parametrize("memory", [1, 10_000, 1 << 20])  # 1, 2 and all images at a time
def test_images_come_as_they_are(suffix: str, memory: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MEMORY", memory)
    module = data(write(tmp_path / f"a.{suffix}"))
    assert module.image_shape == (3, 32, 40)
    assert np.array_equal(images(module), FIRST)
    assert module.factors == ()


@pytest.mark.parametrize(
    ("pixels", "layout", "expected"),
    [
        (FIRST, "auto", FIRST),
        (PIXELS[..., 0], "auto", FIRST[:, :1]),
        (PIXELS[..., :2], "hwc", FIRST[:, :2]),
        (FIRST[:, :2], "chw", FIRST[:, :2]),
        (PIXELS.astype(np.float32) / 255, "auto", FIRST),
        (PIXELS.astype(np.float64) / 255, "auto", FIRST),
        ((PIXELS > 99), "auto", 255 * (FIRST > 99)),
    ],
)
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_layouts_and_types(suffix: str, pixels: Any, layout: Any, expected: Any, tmp_path: Path) -> None:
    assert np.array_equal(images(data(write(tmp_path / f"a.{suffix}", pixels), layout=layout)), expected)


def test_an_array_in_fortran_order(tmp_path: Path) -> None:
    assert np.array_equal(images(data(write(tmp_path / "a.npy", np.asfortranarray(PIXELS)))), FIRST)
    with pytest.raises(ValueError, match="images is in Fortran order: save it as"):
        data(write(tmp_path / "a.npz", np.asfortranarray(PIXELS)))


@pytest.mark.parametrize("suffix", ["npz", "h5"])
def test_factors_beside_the_images(suffix: str, tmp_path: Path) -> None:
    names = {"factor_names": ["size", "shape"], "factor_kinds": ["ordered", "categorical"]}
    module = data(write(tmp_path / f"a.{suffix}", factors=FACTORS, **names), labels=4, labelled_factors=["shape"])
    assert module.factors == BOTH
    assert module.factors_of(torch.arange(10))[:, 0].tolist() == [0, 1, 2, 3, -1, 4, 5, 6, 7, 8]
    assert module.factors_of(torch.arange(10))[:, 1].tolist() == [0, 1, 2] * 3 + [0]
    batch = next(iter(module.train_dataloader()))
    assert batch.y.shape == (4, 1)


@pytest.mark.parametrize("suffix", ["npy", "csv"])
def test_factors_in_a_file_of_their_own(suffix: str, tmp_path: Path) -> None:
    if suffix == "npy":
        np.save(tmp_path / "f.npy", FACTORS)
    else:
        folder.table(
            tmp_path / "f.csv", np.where(np.isnan(FACTORS), "", FACTORS.astype(str)).tolist(), ("size", "shape")
        )
    names: dict[str, Any] = {"factor_names": ["size", "shape"]} if suffix == "npy" else {}
    path = write(tmp_path / "a.npy")
    module = data(path, factors_file=f"f.{suffix}", factor_kinds=["ordered", "categorical"], **names)
    assert module.factors == BOTH
    assert data(path, factors_file="f.npy" if suffix == "npy" else "f.csv").factor_kinds == ("ordered", "ordered")


def test_text_and_single_factors(tmp_path: Path) -> None:
    module = data(write(tmp_path / "a.npz", factors=np.array(["b", "a"] * 5)))
    assert module.factors == (Factor("factor0", 2, "categorical"),)


@pytest.mark.parametrize(
    ("pixels", "what"),
    [
        (PIXELS.astype(np.int64), r"a\.npz: images is int64: give bytes \(uint8\), floats"),
        (PIXELS[0, 0], r"has shape \(40, 3\): give \(N, H, W\)"),
        (PIXELS[:, :3], r"the channel axis is ambiguous: set layout"),
        (PIXELS[..., :2], r"the channel axis is ambiguous: set layout"),
        (PIXELS / 100, r"cannot be used \(floats from 0 to 2\.55, not in \[0, 1\]\)"),
        (np.full((2, 32, 32), np.nan), r"cannot be used \(floats from nan to nan, not in"),
        (PIXELS[:0], r"images is empty, of shape \(0, 32, 40, 3\)"),
        (np.array([{}, {}]), r"images holds Python objects, which are never read"),
    ],
)
def test_bad_images(pixels: Any, what: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz", pixels)
    with pytest.raises(ValueError, match=what):
        data(path)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"images_key": "x"}, r"a\.npz holds no array x, only images, factors: name another"),
        ({"factors_key": "x"}, r"a\.npz holds no array x, only images, factors"),
        ({"factor_names": ["a", "a"]}, "factor_names must name each of 2 factors once, not a, a"),
        (
            {"factor_kinds": ["ordered"]},
            "factor_kinds must be one of categorical, .* each of 2 factors, not ordered",
        ),
        ({"factors_file": "short.npy"}, r"short\.npy: factor factor0 has 3 rows, and there are 10 images"),
        ({"factors_file": "none.npy"}, r"none\.npy is not there"),
        ({"file": "a.zip"}, r"a\.zip is no file of arrays: give \.npy, \.npz, \.h5 or \.hdf5"),
        ({"file": "b.npz"}, r"b\.npz is not there: put the file there"),
    ],
)
def test_bad_options(options: dict[str, Any], what: str, tmp_path: Path) -> None:
    write(tmp_path / "a.npz", factors=FACTORS)
    np.save(tmp_path / "short.npy", FACTORS[:3])
    with pytest.raises((ValueError, FileNotFoundError), match=what):
        ArrayDataModule(**{"file": "a.npz", "data_dir": tmp_path, **options})


@pytest.mark.parametrize("suffix", ["npy", "npz", "h5"])
def test_files_that_are_cut_off(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"a.{suffix}")
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises(ValueError, match=rf"a\.{suffix} cannot be used \(.+\): write it again"):
        data(path)


def test_links_in_hdf5_are_refused(tmp_path: Path) -> None:
    other = write(tmp_path / "other.h5")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["images"] = h5py.ExternalLink(str(other), "/images")
    with pytest.raises(ValueError, match="images is a link"):
        data(tmp_path / "a.h5")


def test_another_file_makes_the_cache_anew(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npy")
    data(path)
    write(path, 255 - PIXELS)
    assert np.array_equal(images(data(path)), 255 - FIRST)
