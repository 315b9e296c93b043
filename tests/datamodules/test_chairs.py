"""3D Chairs from small folders in the official layout."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from datamodules.chairs import ChairsDataModule
from datamodules.factors import Factor
from datamodules.sources import MemoryMapped
from tests.helpers.datasets.chairs import MODELS, small, write

pytestmark = pytest.mark.xdist_group("chairs")  # one worker makes what all of them read


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that no test changes."""
    return write(tmp_path_factory.mktemp("chairs")).parent


def test_factors_from_file_names(whole: Path) -> None:
    module = small(whole, mask=True)
    assert module.factor_names == ("model", "elevation", "azimuth")
    assert module.factor_kinds == ("categorical", "ordered", "periodic")
    assert module.factor_sizes == (5, 2, 3)
    factors = module.factors_of(torch.arange(30))
    assert len({tuple(row) for row in factors.tolist()}) == 30
    # Each picture has the box of its own model and view.
    pictures = module.pictures.images(torch.arange(30))
    assert isinstance(module.pictures, MemoryMapped)
    for (model, elevation, azimuth), picture in zip(factors.tolist(), pictures[:, 0], strict=True):
        view = 3 * elevation + azimuth
        rows, columns = picture.nonzero().unbind(1)
        assert rows.float().mean() == pytest.approx((150 + 25 * model + 24.5 - 100) * 64 / 400, abs=0.6)
        assert columns.float().mean() == pytest.approx((150 + 25 * view + 49.5 - 100) * 64 / 400, abs=0.6)


def test_masks_are_binary_and_cover_the_chair(whole: Path) -> None:
    masks = small(whole, mask=True).pictures.images(torch.arange(30))
    assert masks.shape == (30, 1, 64, 64)
    assert set(masks.unique().tolist()) == {0, 255}
    area = (masks == 255).sum((1, 2, 3)).float()
    assert ((area - 100 * 50 * (64 / 400) ** 2).abs() < 16).all()  # half a pixel of its outline at most


def test_pictures_are_grey_on_white_unless_masks_are_asked_for(whole: Path) -> None:
    grey = small(whole, crop=1.0, image_size=600).pictures.images(torch.tensor([0]))
    expected = np.full((600, 600), 255)
    expected[150:200, 150:250] = round(0.299 * 90 + 0.587 * 120 + 0.114 * 60)
    assert np.array_equal(grey[0, 0].numpy(), expected)


def test_a_cache_for_each_preparation(whole: Path) -> None:
    for options in ({}, {"mask": True}, {"image_size": 32}, {"crop": 0.5}):
        small(whole, **options).prepare_data()
    found = {path.name for path in (whole / ".cache").iterdir() if path.is_dir()}
    assert {"chairs-mask-64-0.6667", "chairs-grey-64-0.6667", "chairs-grey-32-0.6667", "chairs-grey-64-0.5"} <= found


def test_the_split_is_by_models(whole: Path) -> None:
    module = small(whole, val_size=4)
    module.setup()
    models = module.factors_of(torch.arange(30))[:, 0]
    assert models[module.test_ids].unique().tolist() == [4]  # the last fifth
    assert len(module.test_ids) == 6
    assert int(module.test_ids.max()) < 29
    rest = torch.cat([module.train_ids, module.val_ids])
    assert len(module.val_ids) == 4
    assert sorted(rest.tolist()) == (models < 4).nonzero().flatten().tolist()


@pytest.mark.parametrize(
    ("test_models", "held_out"),
    [(0, []), (1, [4]), (3, [2, 3, 4]), (0.4, [3, 4])],
    ids=["none", "one", "three", "share"],
)
def test_the_test_chairs_are_the_last_models(whole: Path, test_models: int | float, held_out: list[int]) -> None:
    module = small(whole, val_size=0, test_models=test_models)
    module.setup()
    models = module.factors_of(torch.arange(30))[:, 0]
    assert models[module.test_ids].unique().tolist() == held_out
    assert models[module.train_ids].unique().tolist() == [model for model in range(5) if model not in held_out]


def test_809_models_give_647_for_training(tmp_path: Path) -> None:
    module = ChairsDataModule(data_dir=tmp_path, val_size=0)
    module._table = torch.arange(809)[:, None].repeat(1, 3)
    module.factors = (Factor("model", 809), *module.factors[1:])
    train, _, test = module.split_ids()
    assert (len(train), len(test)) == (647, 162)  # 80 % of 809 is 647.2


def test_a_file_chooses_and_orders_the_models(whole: Path, tmp_path: Path) -> None:
    listed = tmp_path / "models.txt"
    listed.write_text("4d-b\n1a6f615e8b1b5ae4dbbc9440457e303e\n4d\n")
    module, everything = small(whole, val_size=0, test_models=1, models_file=listed), small(whole)
    module.setup()
    assert module.factor_sizes == (3, 2, 3)
    assert len(module.pictures) == 18
    models = module.factors_of(torch.arange(18))[:, 0]
    assert models.tolist() == [0] * 6 + [1] * 6 + [2] * 6
    assert module.test_ids.tolist() == list(range(12, 18))  # 4d, the last of the list
    by_name = everything.factors_of(torch.arange(30))[:, 0]
    for model, place in ((0, 4), (1, 0), (2, 3)):
        expected = everything.pictures.images((by_name == place).nonzero().flatten())
        assert module.pictures.images((models == model).nonzero().flatten()).equal(expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"models_file .*models\.txt cannot be read \(.*No such file"),
        ("", r"models_file .*models\.txt is empty"),
        ("2b\n5e\n", r"models_file .*models\.txt names 5e, of which rendered_chairs holds no picture"),
    ],
    ids=["missing", "empty", "unknown"],
)
def test_a_bad_file_of_models(whole: Path, tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "models.txt").write_text(content)
    with pytest.raises(ValueError, match=message):
        small(whole, models_file=tmp_path / "models.txt")


@pytest.mark.parametrize("test_models", [5, 1.5, -1])
def test_a_bad_number_of_test_chairs(whole: Path, test_models: int | float) -> None:
    with pytest.raises(ValueError, match="test_models"):
        small(whole, test_models=test_models).setup()


def test_an_incomplete_folder(tmp_path: Path) -> None:
    root = write(tmp_path)
    (root / MODELS[0] / "renders" / "image_002_p020_t023_r096.png").unlink()
    (root / MODELS[0] / "renders" / "thumbnail.png").write_bytes(b"")  # not a view
    module = small(tmp_path)
    assert module.factor_sizes == (5, 2, 3)
    assert len(module.pictures) == 29
    assert [0, 0, 1] not in module.factors_of(torch.arange(29)).tolist()


def test_a_new_picture_makes_a_new_cache(tmp_path: Path) -> None:
    root = write(tmp_path)
    small(tmp_path).prepare_data()
    folder = root / "0z" / "renders"
    folder.mkdir(parents=True)
    Image.new("RGB", (600, 600)).save(folder / "image_001_p020_t011_r096.png")
    module = small(tmp_path)
    assert module.pictures.images(torch.tensor([0])).max() == 0  # black
    assert len(module.pictures) == 31


def test_a_renamed_model_makes_a_new_cache(tmp_path: Path) -> None:
    root = write(tmp_path)
    before = small(tmp_path).pictures.images(torch.arange(30)).view(5, 6, 1, 64, 64)
    (root / "2b").rename(root / "9z")
    after = small(tmp_path).pictures.images(torch.arange(30)).view(5, 6, 1, 64, 64)
    assert after.equal(before[[0, 2, 3, 4, 1]])


def test_no_folder(tmp_path: Path) -> None:
    module = ChairsDataModule(data_dir=tmp_path)
    assert module.image_shape == (1, 64, 64)
    assert module.factor_sizes == (1393, 2, 31)
    with pytest.raises(
        FileNotFoundError, match=r"rendered_chairs holds no .*fetch rendered_chairs\.tar from .*unpack it"
    ):
        module.prepare_data()


def test_a_damaged_picture(tmp_path: Path) -> None:
    path = write(tmp_path) / MODELS[3] / "renders" / "image_002_p020_t023_r096.png"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"4d/renders/image_002_p020_t023_r096\.png cannot be used \("):
        small(tmp_path).prepare_data()


@pytest.mark.parametrize(
    ("options", "field"), [({"image_size": 0}, "image_size"), ({"crop": 0.0}, "crop"), ({"crop": 1.1}, "crop")]
)
def test_bad_options(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=rf"{field} must be"):
        ChairsDataModule(**options)
