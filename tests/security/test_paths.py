"""Lists, links and archives cannot make a dataset of files that lie elsewhere, nor write there."""

import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from PIL import Image

from datamodules import CelebADataModule, MNISTDataModule
from tests.helpers.datasets import celeba, chairs, dsprites, isaac3d, mnist, shapes3d


@pytest.fixture(autouse=True)
def _any_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    celeba.take_any_checksum(monkeypatch)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A picture outside the data that every reader would take."""
    path = tmp_path / "private.png"
    Image.new("RGB", (178, 218), "red").save(path)
    return path


def rename(root: Path, name: str) -> None:
    for file in root.glob("*.txt"):
        file.write_text(file.read_text().replace(celeba.NAMES[0], name))


@pytest.mark.parametrize("how", ["up", "absolute", "link", "link to a folder"])
def test_names_that_lead_out_of_celeba(how: str, tmp_path: Path, private: Path) -> None:
    root = celeba.write(tmp_path / "data")
    pictures = root / "img_align_celeba"
    if how == "up":
        rename(root, "../../../private.png")
    elif how == "absolute":
        rename(root, str(private))
    elif how == "link":
        (pictures / celeba.NAMES[0]).unlink()
        (pictures / celeba.NAMES[0]).symlink_to(private)
    else:
        (pictures / "more").symlink_to(tmp_path)
        rename(root, "more/private.png")
    with pytest.raises(ValueError, match="leads out of"):
        CelebADataModule(data_dir=tmp_path / "data").prepare_data()
    assert not list((tmp_path / "data" / ".cache").glob("*/images.u8"))


@pytest.mark.parametrize("module", [chairs, isaac3d])
def test_links_out_of_other_folders(module: Any, tmp_path: Path, private: Path) -> None:
    root = module.write(tmp_path / "data")
    picture = next(root.rglob("*.png"))
    picture.unlink()
    picture.symlink_to(private)
    data = module.small(root.parent) if module is chairs else module.Small(data_dir=root.parent)
    with pytest.raises(ValueError, match="leads out of"):
        data.prepare_data()


def test_a_folder_that_is_itself_a_link_is_fine(tmp_path: Path) -> None:
    shutil.move(celeba.write(tmp_path / "elsewhere"), tmp_path / "disk")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "celeba").symlink_to(tmp_path / "disk")
    CelebADataModule(data_dir=tmp_path / "data").prepare_data()


@pytest.mark.parametrize("how", ["external link", "soft link", "external storage", "virtual"])
def test_arrays_that_hdf5_takes_from_elsewhere(how: str, tmp_path: Path) -> None:
    other = shapes3d.write(tmp_path).rename(tmp_path / "other.h5")
    with h5py.File(tmp_path / "3dshapes.h5", "w") as file:
        file.create_dataset("labels", data=shapes3d.LABELS)
        shape = shapes3d.IMAGES.shape
        if how == "external link":
            file["images"] = h5py.ExternalLink(str(other), "/images")
        elif how == "soft link":
            file["images"] = h5py.SoftLink("/labels")
        elif how == "external storage":
            size = int(np.prod(shape))
            file.create_dataset("images", shape, np.uint8, external=[(str(other), 0, size)])
        else:
            layout = h5py.VirtualLayout(shape, np.uint8)
            layout[:] = h5py.VirtualSource(str(other), "images", shape)
            file.create_virtual_dataset("images", layout)
    with pytest.raises(ValueError, match=r"not the official file \(images is"):
        shapes3d.Small(data_dir=tmp_path, source="file").prepare_data()


def test_files_of_datasets_that_are_links_out_of_their_folder(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    raw = folder / "MNIST" / "raw"
    for prefix in ("train", "t10k"):
        mnist.write(raw, prefix, mnist.pictures(4, 0), torch.arange(4))
    lists = celeba.write(folder)
    labels = isaac3d.write(folder) / "labels.npy"
    data = {
        shapes3d.write(folder): shapes3d.Small(data_dir=folder),
        dsprites.write(folder): dsprites.Small(data_dir=folder),
        raw / "train-images-idx3-ubyte": MNISTDataModule(data_dir=folder, val_size=1),
        lists / "list_attr_celeba.txt": CelebADataModule(data_dir=folder),
        labels: isaac3d.Small(data_dir=folder),
    }
    for path, module in data.items():
        path.rename(elsewhere / path.name)
        path.symlink_to(elsewhere / path.name)
        with pytest.raises(ValueError, match=f"{path.name} leads out of .*: put the file itself there"):
            module.prepare_data()


@pytest.mark.parametrize("member", ["../escaped", "/escaped", "img_align_celeba/../../../escaped"])
def test_members_of_an_archive_stay_in_the_folder(member: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CelebA's is unpacked by torchvision; its checksum is off here, so that any will do. Cars3D's has its own test."""
    root = celeba.write(tmp_path / "data")
    shutil.rmtree(root / "img_align_celeba")
    with zipfile.ZipFile(root / "img_align_celeba.zip", "w") as archive:
        archive.writestr(member, "x")
    monkeypatch.setattr("torchvision.datasets.celeba.download_file_from_google_drive", lambda *args: None)
    with pytest.raises(FileNotFoundError, match=r"CelebA cannot be read|is missing"):
        CelebADataModule(data_dir=tmp_path / "data", download=True).prepare_data()
    outside = [Path(at, name) for at, _, names in os.walk(tmp_path) for name in names if name == "escaped"]
    assert all(path.is_relative_to(root) for path in outside)
    assert not Path("/escaped").exists()
