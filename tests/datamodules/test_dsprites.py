"""dSprites from small files in the official layout."""

import warnings
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from datamodules import dsprites
from datamodules.dsprites import DSpritesDataModule
from datamodules.renderers.dsprites import DSpritesRenderer
from datamodules.sources import MemoryMapped, Rendered
from tests.helpers.datasets.dsprites import CLASSES, IMAGES, NAME, VALUES, Small, Trap, write


def test_the_official_layout() -> None:
    module = DSpritesDataModule(source="render")
    assert module.factor_names == ("shape", "scale", "orientation", "x", "y")
    assert module.factor_kinds == ("categorical", "ordered", "periodic", "ordered", "ordered")
    assert module.factors_of(torch.tensor([245760, 40960, 1024, 32, 1])).equal(torch.eye(5, dtype=torch.long))
    assert prod(module.factor_sizes) == 737_280


@pytest.mark.parametrize("step", [7, 4096])
def test_pictures_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(dsprites, "STEP", step)
    write(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = Small(data_dir=tmp_path)
    assert module.source == "file"
    ids = torch.randperm(len(IMAGES), generator=torch.Generator().manual_seed(0))
    assert isinstance(module.pictures, MemoryMapped)
    assert np.array_equal(module.pictures.images(ids).numpy(), 255 * IMAGES[ids, None])
    (row,) = np.flatnonzero((CLASSES == [0, 2, 0, 3, 1, 2]).all(1))
    assert np.array_equal(module.images_at(torch.tensor([[2, 0, 3, 1, 2]]))[0, 0].numpy(), IMAGES[row])
    assert not (tmp_path / "trace").exists()


def test_auto_draws_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=rf"{NAME} is not there: .* drawn by DSpritesRenderer instead"):
        module = DSpritesDataModule(data_dir=tmp_path)
    assert module.source == "render"
    assert isinstance(module.pictures, Rendered)
    assert len(module.pictures) == 737_280
    ids = torch.tensor([0, 400_000, 737_279])
    colour_too = torch.cat([torch.zeros(3, 1, dtype=torch.long), module.factors_of(ids)], dim=1)
    assert module.pictures.images(ids).equal(DSpritesRenderer().draw(colour_too))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"imgs": IMAGES[1:]}, r"imgs is uint8 \(143, 64, 64\), not uint8 \(144, 64, 64\)"),
        ({"imgs": IMAGES.astype(bool)}, "imgs is bool"),
        ({"imgs": IMAGES * np.uint8(255)}, "imgs holds 255, not only 0 and 1"),
        ({"imgs": np.asfortranarray(IMAGES)}, "imgs is in Fortran order"),
        ({"imgs": np.array([{}], dtype=object)}, "imgs is object"),
        ({"imgs": None}, r"imgs\.npy"),
        ({"latents_classes": None}, "latents_classes"),
        ({"latents_classes": CLASSES[:, 1:]}, r"latents_classes is int64 \(144, 5\), not int64 \(144, 6\)"),
        ({"latents_classes": CLASSES[:, [0, 1, 2, 3, 5, 4]]}, "column 4 of the labels does not follow"),
        ({"latents_values": VALUES.astype(np.float32)}, "latents_values is float32"),
        ({"latents_values": None}, "latents_values"),
    ],
)
def test_a_file_of_another_layout(tmp_path: Path, changes: dict[str, Any], complaint: str) -> None:
    write(tmp_path, **changes)
    with pytest.raises(ValueError, match=rf"{NAME} is not the official file \(.*{complaint}.*delete it and fetch it"):
        Small(data_dir=tmp_path).prepare_data()
    assert not (tmp_path / ".cache" / NAME.removesuffix(".npz")).exists()


@pytest.mark.parametrize("key", ["imgs", "latents_classes", "latents_values"])
def test_no_array_is_unpickled(tmp_path: Path, key: str) -> None:
    write(tmp_path, **{key: np.array([Trap(tmp_path / "trace")], dtype=object)})
    with pytest.raises(ValueError, match=rf"{NAME} is not the official file \("):
        Small(data_dir=tmp_path).prepare_data()
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("size", [0, 10, 20_000, -1])
def test_a_truncated_file(tmp_path: Path, size: int) -> None:
    path = write(tmp_path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=rf"{NAME} is not the official file \(.*delete it and fetch it again"):
        Small(data_dir=tmp_path).prepare_data()


def test_a_damaged_file(tmp_path: Path) -> None:
    path = write(tmp_path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    with pytest.raises(ValueError, match=rf"{NAME} is not the official file \(.*delete it and fetch it again"):
        Small(data_dir=tmp_path).prepare_data()


def test_all_images_may_be_for_training() -> None:
    module = DSpritesDataModule(source="render", val_size=0, test_size=0, labels=7373)
    module.setup()
    assert module.train_ids.equal(torch.arange(737_280))
    assert len(module.labelled_ids) == 7373
    assert module.evaluation_split == "train"


def test_balance_over_halves() -> None:
    module = DSpritesDataModule(source="render", balance="halves")
    cells = module.cells_of(torch.arange(737_280))
    assert torch.bincount(cells).tolist() == [737_280 // 144] * 144
    by_hand = {  # shape, scale, orientation, x, y: cell of 3 × 6 × 2 × 2 × 2
        (0, 0, 19, 15, 15): 0,
        (0, 0, 20, 15, 15): 4,
        (0, 0, 19, 16, 15): 2,
        (0, 0, 19, 15, 16): 1,
        (0, 1, 0, 0, 0): 8,
        (1, 0, 0, 0, 0): 48,
        (2, 5, 39, 31, 31): 143,
    }
    for factors, cell in by_hand.items():
        (row,) = np.ravel_multi_index(np.array([factors]).T, (3, 6, 40, 32, 32))
        assert module.cells_of(torch.tensor([row])).item() == cell


@pytest.mark.parametrize("labels", [144, 1000])
def test_the_labelled_set_is_balanced_over_halves(labels: int) -> None:
    module = DSpritesDataModule(source="render", balance="halves", labels=labels, labelled_factors=["shape"])
    module.setup()
    counts = torch.bincount(module.cells_of(module.labelled_ids), minlength=144)
    assert int(counts.sum()) == labels
    assert int(counts.max() - counts.min()) <= 1


def test_the_labelled_set_is_balanced_over_classes() -> None:
    module = DSpritesDataModule(source="render", labels=100, labelled_factors=["shape"], label_form="index")
    module.setup()
    assert sorted(torch.bincount(module.factors_of(module.labelled_ids)[:, 0]).tolist()) == [33, 33, 34]
