"""CelebA from small folders in torchvision's layout."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.datasets import CelebA

from datamodules.celeba import ATTRIBUTES, CelebAClassesDataModule, CelebADataModule
from datamodules.loader import BatchLoader
from datamodules.sources import MemoryMapped
from tests.helpers.datasets.celeba import LABELS, NAMES, TOTAL, take_any_checksum, write

pytestmark = pytest.mark.xdist_group("celeba")  # one worker makes what all of them read


@pytest.fixture(autouse=True)
def _any_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    take_any_checksum(monkeypatch)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that no test changes."""
    return write(tmp_path_factory.mktemp("faces")).parent


def test_attributes_are_factors(whole: Path) -> None:
    module = CelebADataModule(data_dir=whole)
    assert module.factor_names == tuple(ATTRIBUTES)
    assert module.factor_sizes == (2,) * 40
    assert module.factor_names[20] == "Male"
    assert module.factor_names[31] == "Smiling"
    ids = torch.tensor([7, 0, 19])
    assert np.array_equal(module.factors_of(ids).numpy(), LABELS[ids])


def test_the_official_split(whole: Path) -> None:
    module = CelebADataModule(data_dir=whole, batch_size=4, labels=4, labelled_factors=["Smiling", "Male"])
    module.prepare_data()
    module.setup()
    assert module.train_ids.tolist() == list(range(12))
    assert module.val_ids.tolist() == [12, 13, 14]
    assert module.test_ids.tolist() == [15, 16, 17, 18, 19]
    (batch, *_) = cast(BatchLoader, module.test_dataloader())
    assert batch.x.equal(module.pictures.images(module.test_ids[:4]))
    assert np.array_equal(batch.y.numpy(), LABELS[15:19][:, [20, 31]])


def test_cropped_and_resized(whole: Path) -> None:
    module = CelebADataModule(data_dir=whole)
    assert module.image_shape == (3, 64, 64)
    images = module.pictures.images(torch.arange(TOTAL)).numpy().astype(float)
    assert isinstance(module.pictures, MemoryMapped)
    # Pixel i of 64 is about 148 (i + 1/2) / 64 - 1/2 of the crop, which starts at row 35 and column 15.
    place = 148 * (np.arange(64) + 0.5) / 64 - 0.5
    assert np.abs(images[:, 0, 2:-2, 32] - (35 + place)[2:-2]).max() < 4  # JPEG
    assert np.abs(images[:, 1, 32, 2:-2] - (15 + place)[2:-2]).max() < 4
    assert np.abs(images[:, 2].mean((1, 2)) - 10 * np.arange(TOTAL)).max() < 2


def test_whole_pictures(whole: Path) -> None:
    module = CelebADataModule(data_dir=whole, crop=None, image_size=None)
    assert module.image_shape == (3, 218, 178)
    with Image.open(whole / "celeba" / "img_align_celeba" / NAMES[3]) as expected:
        pixels = np.asarray(expected).transpose(2, 0, 1)
    assert np.array_equal(module.pictures.images(torch.tensor([3]))[0].numpy(), pixels)


@pytest.mark.parametrize(
    ("crop", "image_size", "shape"),
    [
        (None, 64, (3, 64, 64)),
        (148, None, (3, 148, 148)),
        (178, (40, 30), (3, 40, 30)),
        (None, (109, 89), (3, 109, 89)),
    ],
)
def test_sizes(whole: Path, crop: Any, image_size: Any, shape: tuple[int, ...]) -> None:
    module = CelebADataModule(data_dir=whole, crop=crop, image_size=image_size)
    assert module.image_shape == shape
    assert module.pictures.images(torch.tensor([1, 2])).shape == (2, *shape)


def test_no_folder(tmp_path: Path) -> None:
    module = CelebADataModule(data_dir=tmp_path)
    with pytest.raises(
        FileNotFoundError, match=r"celeba \(Dataset not found.*fetch img_align_celeba\.zip .* put all of them"
    ):
        module.prepare_data()


def test_download_is_torchvisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CelebA, "download", lambda self: write(tmp_path))
    CelebADataModule(data_dir=tmp_path, download=True).prepare_data()
    assert (tmp_path / ".cache" / "celeba-148x148-64x64" / "images.u8").stat().st_size == TOTAL * 3 * 64 * 64


def test_a_download_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: CelebA) -> None:
        raise RuntimeError("quota exceeded")

    monkeypatch.setattr(CelebA, "download", refuse)
    with pytest.raises(FileNotFoundError, match=r"celeba \(quota exceeded\): fetch img_align_celeba\.zip"):
        CelebADataModule(data_dir=tmp_path, download=True).prepare_data()


def test_a_missing_picture(tmp_path: Path) -> None:
    (write(tmp_path) / "img_align_celeba" / NAMES[5]).unlink()
    with pytest.raises(FileNotFoundError, match=r"img_align_celeba/000006\.jpg is missing: unpack"):
        CelebADataModule(data_dir=tmp_path).prepare_data()


def test_a_picture_of_another_size(tmp_path: Path) -> None:
    Image.new("RGB", (178, 178)).save(write(tmp_path) / "img_align_celeba" / NAMES[5])
    with pytest.raises(ValueError, match=r"000006\.jpg cannot be used \(178×178 pixels, not 178×218\)"):
        CelebADataModule(data_dir=tmp_path).prepare_data()


def test_a_truncated_picture(tmp_path: Path) -> None:
    path = write(tmp_path) / "img_align_celeba" / NAMES[5]
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(ValueError, match=r"000006\.jpg cannot be used \(.*truncated"):
        CelebADataModule(data_dir=tmp_path).prepare_data()


def test_other_attributes(tmp_path: Path) -> None:
    path = write(tmp_path) / "list_attr_celeba.txt"
    path.write_text(path.read_text().replace("Smiling", "Laughing"))
    with pytest.raises(ValueError, match=r"celeba holds lists that do not give 40 attributes for every picture: fetch"):
        CelebADataModule(data_dir=tmp_path).prepare_data()


@pytest.mark.parametrize("name", ["list_attr_celeba.txt", "list_eval_partition.txt"])
def test_a_list_that_ends_early(tmp_path: Path, name: str) -> None:
    path = write(tmp_path) / name
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(ValueError, match=r"celeba holds lists that do not give 40 attributes for every picture: fetch"):
        CelebADataModule(data_dir=tmp_path).prepare_data()


def test_a_truncated_list(tmp_path: Path) -> None:
    path = write(tmp_path) / "list_attr_celeba.txt"
    path.write_text(path.read_text()[:1500])
    with pytest.raises(FileNotFoundError, match=r"CelebA cannot be read from .*celeba \(expected sequence of length"):
        CelebADataModule(data_dir=tmp_path).prepare_data()


@pytest.mark.parametrize("options", [{"crop": 0}, {"crop": 179}, {"image_size": 0}, {"image_size": (64, 0)}])
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))} must"):
        CelebADataModule(**options)


def test_the_labelled_set_is_random_or_the_first_faces(tmp_path: Path) -> None:
    rare = np.zeros((200, 40), int)
    rare[:10, ATTRIBUTES.index("Smiling")] = 1
    write(tmp_path, rare, [1] * 5 + [0] * 195)
    chosen = CelebADataModule(data_dir=tmp_path, labels=20, labelled_factors=["Smiling"])
    chosen.setup()
    assert chosen.labels_of(chosen.labelled_ids).sum() < 3  # balance would take all five smiles
    first = CelebAClassesDataModule(data_dir=tmp_path, labels=80, labelled_set="first")
    first.setup()
    assert first.labelled_ids.tolist() == list(range(5, 85))


def test_every_face_may_be_for_training_or_a_tenth_held_out(whole: Path) -> None:
    module = CelebADataModule(data_dir=whole, official_split=False)
    module.setup()
    assert module.train_ids.tolist() == list(range(TOTAL))
    assert module.evaluation_split == "train"
    module = CelebADataModule(data_dir=whole, official_split=False, test_size=0.1)
    module.setup()
    assert (len(module.train_ids), len(module.val_ids), len(module.test_ids)) == (18, 0, 2)
    with pytest.raises(ValueError, match="set official_split=False"):
        CelebADataModule(data_dir=whole, test_size=0.1)
