from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from datamodules import FashionMNISTDataModule, MNISTDataModule
from tests.helpers.datasets.mnist import pictures, write
from tests.helpers.paths import ROOT

TRAIN, TEST = 40, 15


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("MNIST", "FashionMNIST"):
        write(tmp_path / name / "raw", "train", pictures(TRAIN, 0), torch.arange(TRAIN) % 10)
        write(tmp_path / name / "raw", "t10k", pictures(TEST, 1), torch.arange(TEST) % 10)
    return tmp_path


def ready(root: Path, **options: Any) -> MNISTDataModule:
    data = MNISTDataModule(data_dir=root, **({"val_size": 10, "batch_size": 5} | options))
    data.setup()
    return data


def test_surface(root: Path) -> None:
    data = MNISTDataModule(data_dir=root)
    assert data.image_shape == (1, 32, 32)
    assert (data.factor_names, data.factor_sizes, data.factor_kinds) == (("digit",), (10,), ("categorical",))
    assert (data.label_size, data.labelled_names) == (1, ("digit",))
    assert MNISTDataModule(data_dir=root, label_form="onehot", image_size=64).label_size == 10
    fashion = FashionMNISTDataModule(data_dir=root, image_size=28)
    assert (fashion.factor_names, fashion.image_shape) == (("article",), (1, 28, 28))
    assert len(fashion.pictures) == TRAIN + TEST


@pytest.mark.parametrize(("size", "off"), [(14, 1), (28, 0), (32, 0), (64, 0)])
def test_pictures_are_resized_as_pil_does_and_not_binarised(size: int, off: int, root: Path) -> None:
    images = ready(root, image_size=size).pictures.images(torch.tensor([3, TRAIN + 2]))
    for image, original in zip(images, (pictures(TRAIN, 0)[3], pictures(TEST, 1)[2]), strict=True):
        expected = Image.fromarray(original.to(torch.uint8).numpy()).resize((size, size), Image.Resampling.BILINEAR)
        assert np.abs(image[0].numpy().astype(int) - np.asarray(expected)).max() <= off
    assert len(images.unique()) > 100


def test_the_official_test_set_is_the_test_split(root: Path) -> None:
    data = ready(root)
    assert data.test_ids.tolist() == list(range(TRAIN, TRAIN + TEST))
    assert sorted([*data.train_ids.tolist(), *data.val_ids.tolist()]) == list(range(TRAIN))
    assert len(data.val_ids) == 10
    assert torch.cat([batch.y for batch in data.test_dataloader()]).flatten().tolist() == [i % 10 for i in range(TEST)]


def test_labels_are_classes(root: Path) -> None:
    ids = torch.tensor([7, 21, TRAIN + 4])
    assert MNISTDataModule(data_dir=root).labels_of(ids).tolist() == [[7], [1], [4]]
    assert MNISTDataModule(data_dir=root, label_form="onehot").labels_of(ids).argmax(1).tolist() == [7, 1, 4]


def test_ten_labels_are_one_a_class_and_fill_every_batch(root: Path) -> None:
    data = ready(root, labels=10, labelled_batch_size=32)
    assert sorted(data.labels_of(data.labelled_ids).flatten().tolist()) == list(range(10))
    for batch in data.train_dataloader():
        assert batch.x.shape == (37, 1, 32, 32)
        assert batch.labelled.sum() == 32
        assert set(batch.y[5:].flatten().tolist()) == set(range(10))


def test_the_first_images_may_be_the_labelled_ones(root: Path) -> None:
    data = ready(root, labels=12, labelled_set="first", val_size=0)
    assert data.labelled_ids.tolist() == list(range(12))
    labelled = torch.cat([batch.x[batch.labelled] for batch in data.train_dataloader()])
    first = data.pictures.images(torch.arange(12))
    assert {image.numpy().tobytes() for image in labelled} == {image.numpy().tobytes() for image in first}


@pytest.mark.parametrize("name", ["train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"])
@pytest.mark.parametrize("keep", [0, 3, 10, 20])
def test_truncated_files(name: str, keep: int, root: Path) -> None:
    file = root / "MNIST" / "raw" / name
    file.write_bytes(file.read_bytes()[:keep])
    prefix = name.split("-")[0]
    with pytest.raises(ValueError, match=f"a {prefix} file in .*MNIST/raw is damaged .*: delete it, and set download"):
        ready(root)


def test_files_that_do_not_match(root: Path) -> None:
    write(root / "MNIST" / "raw", "train", pictures(TRAIN, 0), torch.arange(TRAIN - 1) % 10)
    with pytest.raises(ValueError, match=r"a train file in .* is damaged \(40 pictures but 39 labels\)"):
        ready(root)


def test_missing_files(root: Path) -> None:
    (root / "MNIST" / "raw" / "t10k-images-idx3-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match=r"MNIST/raw holds no t10k-images-idx3-ubyte: .* set download=True"):
        ready(root)


def test_failed_downloads_keep_torchvisions_reason(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "MNIST" / "raw" / "t10k-images-idx3-ubyte").unlink()

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no route to host")

    monkeypatch.setattr("torchvision.datasets.mnist.download_and_extract_archive", fail)
    with pytest.raises(RuntimeError, match="no route to host"):
        ready(root, download=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_size": 0}, "image_size must be at least 1, not 0"),
        ({"labelled_factors": ["shape"]}, "labelled_factors shape not known; choose from digit"),
        ({"labels": 31}, "labels=31 must be at least 1 and at most 30"),
        ({"val_size": 40}, "val_size=40 and test_size=0 leave no training images of 40"),
    ],
)
def test_bad_input(options: dict[str, Any], message: str, root: Path) -> None:
    with pytest.raises(ValueError, match=message):
        ready(root, **options)


def real(name: str) -> Path:
    """A folder beside or inside the project with the original files, if there is one."""
    for folder in (ROOT / "data", *sorted(ROOT.parent.glob("*/data"))):
        if (folder / name / "raw" / "train-images-idx3-ubyte").is_file():
            return folder
    pytest.skip(f"no {name} files beside the project")


def test_the_original_mnist() -> None:
    data = MNISTDataModule(data_dir=real("MNIST"), labels=100)
    data.setup()
    assert (len(data.train_ids), len(data.val_ids), len(data.test_ids)) == (50_000, 10_000, 10_000)
    first = data.labels_of(torch.tensor([0, 1, 2, 60_000, 60_001])).flatten().tolist()
    assert first == [5, 0, 4, 7, 2]  # as on the first page of every tutorial
    assert data.labels_of(data.labelled_ids).long().flatten().bincount().tolist() == [10] * 10
    # The mean of the original training pictures, .1307, is a well known constant; resizing keeps it.
    mean = data.pictures.images(torch.arange(60_000)).float().mean() / 255
    assert mean.item() == pytest.approx(0.1307, abs=5e-4)


def test_the_original_fashion_mnist() -> None:
    data = FashionMNISTDataModule(data_dir=real("FashionMNIST"), val_size=5000)
    data.setup()
    assert (len(data.train_ids), len(data.val_ids), len(data.test_ids)) == (55_000, 5_000, 10_000)
    assert data.factors_of(data.test_ids).flatten().bincount().tolist() == [1000] * 10
