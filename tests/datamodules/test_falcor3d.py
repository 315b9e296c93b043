"""Falcor3D from a small folder in the official layout; what it shares with Isaac3D is tested there."""

from math import prod
from pathlib import Path

import numpy as np
import pytest
import torch

from datamodules import Falcor3DDataModule
from tests.helpers.datasets.falcor3d import LABELS, PIXELS, SIZES, Small, write


def test_the_official_layout() -> None:
    module = Falcor3DDataModule()
    assert prod(module.factor_sizes) == 233_280
    # index = lighting_intensity · 46656 + lighting_x · 7776 + … + camera_y · 6 + camera_z, as the official page says
    ids = torch.tensor([46656, 7776, 1296, 216, 36, 6, 1])
    assert module.factors_of(ids).equal(torch.eye(7, dtype=torch.long))
    assert module.factor_names[0] == "light_intensity"
    assert module.image_shape == (3, 64, 64)


def test_pictures_are_found_by_their_factors(tmp_path: Path) -> None:
    write(tmp_path)
    module = Small(data_dir=tmp_path, image_size=128)
    numbers = np.arange(prod(SIZES)).reshape(SIZES)
    for place in ((0,) * 7, (1, 2, 0, 1, 0, 1, 1), (1, 0, 0, 0, 0, 1, 0)):
        image = module.images_at(torch.tensor([place]))[0] * 255
        assert np.array_equal(image.round().byte().numpy(), PIXELS[numbers[place]].transpose(2, 0, 1))
    assert [path.name for path in (tmp_path / ".cache").iterdir() if path.is_dir()] == ["falcor3d-128"]


def test_what_is_missing_or_in_another_order(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"Falcor3D_down128/images is not there: fetch Falcor3D_128x128 from"):
        Small(data_dir=tmp_path).prepare_data()
    write(tmp_path, LABELS[:, ::-1])
    with pytest.raises(ValueError, match=r"train-rec\.labels is not the official file \(column 0 of the labels"):
        Small(data_dir=tmp_path).prepare_data()
