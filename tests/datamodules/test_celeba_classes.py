"""PartedVAE's eight variables, from the attributes of small folders in torchvision's layout."""

from pathlib import Path

import numpy as np
import pytest
import torch

from datamodules.celeba import ATTRIBUTES, CelebAClassesDataModule
from tests.helpers.datasets.celeba import LABELS, TOTAL, take_any_checksum, write


@pytest.fixture(autouse=True)
def _any_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    take_any_checksum(monkeypatch)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("celeba")
    write(folder)
    return folder


def test_classes_of_parted_vae_follow_from_the_attributes(whole: Path) -> None:
    module = CelebAClassesDataModule(data_dir=whole, labels=4)
    names = ("hair_colour", "skin_tone", "beard", "fringe", "eyeglasses", "smiling", "hat", "gender")
    assert module.factor_names == names
    assert module.factor_sizes == (4, 3, 2, 3, 2, 2, 2, 2)
    classes, labels = module.factors_of(torch.arange(TOTAL)), module.labels_of(torch.arange(TOTAL))
    for row, found, label in zip(LABELS, classes.tolist(), labels.tolist(), strict=True):
        has = dict(zip(ATTRIBUTES, row.tolist(), strict=True))
        colours = [i for i, name in enumerate(("Black", "Brown", "Blond", "Gray")) if has[f"{name}_Hair"]]
        fringes = [i for i, name in ((1, "Bangs"), (2, "Receding_Hairline")) if has[name]]
        expected = {
            "hair_colour": colours[0] if len(colours) == 1 else -1,
            "skin_tone": 0 if has["Pale_Skin"] else -1,
            "beard": 0 if has["No_Beard"] else 1,
            "fringe": -1 if len(fringes) == 2 else sum(fringes),
            "eyeglasses": has["Eyeglasses"],
            "smiling": has["Smiling"],
            "hat": has["Wearing_Hat"],
            "gender": has["Male"],
        }
        assert dict(zip(names, found, strict=True)) == expected
        assert [-1 if np.isnan(value) else value for value in label] == found
    assert set(classes[:, 3].tolist()) == {-1, 0, 1, 2}
    assert len(set(classes[:, 0].tolist())) > 2
    module.setup()
    assert len(module.labelled_ids) == 4


# About how many per cent of all faces have an attribute: from memory, to be compared with the official list.
COMMON = {"Black_Hair": 24, "Brown_Hair": 20, "Blond_Hair": 15, "Gray_Hair": 4, "No_Beard": 83, "Bangs": 15}
COMMON |= {"Receding_Hairline": 8, "Eyeglasses": 7, "Smiling": 48, "Wearing_Hat": 5, "Male": 42}
SHARES = {  # of classes, in the released code
    "hair_colour": [0.42, 0.33, 0.18, 0.06],
    "beard": [0.85, 0.15],
    "fringe": [0.74, 0.15, 0.11],
    "eyeglasses": [0.93, 0.07],
    "smiling": [0.47, 0.53],
    "hat": [0.95, 0.05],
    "gender": [0.57, 0.43],
}


def test_attributes_as_common_as_in_celeba_give_about_the_released_shares_of_classes(tmp_path: Path) -> None:
    columns = np.zeros((100, 40), int)
    first = 0
    for name, count in COMMON.items():
        start = first if name.endswith("Hair") or name in ("Bangs", "Receding_Hairline") else 0
        columns[(start + np.arange(count)) % 100, ATTRIBUTES.index(name)] = 1
        first = start + count  # hair colours exclude each other, as do bangs and a receding hairline
    write(tmp_path, columns, [0] * 100)
    module = CelebAClassesDataModule(data_dir=tmp_path)
    classes = module.factors_of(torch.arange(100))
    for name, expected in SHARES.items():
        column = classes[:, module.factor_names.index(name)]
        known = column[column >= 0]
        shares = known.bincount(minlength=len(expected)) / len(known)
        # Theirs are of 800 faces, where three standard errors of a common class are .05.
        assert shares.tolist() == pytest.approx(expected, abs=0.06), name
