"""Folders of one's own pictures: labels from tables and subfolders, splits, broken files and caches."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from datamodules import ImageFolderDataModule
from datamodules.factors import Factor
from datamodules.sources import MemoryMapped
from tests.helpers.datasets import folder
from tests.helpers.datasets.folder import Row, table


@pytest.fixture
def rows(tmp_path: Path) -> list[Row]:
    return folder.write(tmp_path / "photos")


def data(tmp_path: Path, **options: Any) -> ImageFolderDataModule:
    """Set up on the folder; a table is named by its file."""
    if "labels_file" in options:
        options["labels_file"] = tmp_path / options["labels_file"]
    small: dict[str, Any] = {"image_size": 32, "batch_size": 2}
    module = ImageFolderDataModule(tmp_path / "photos", **small | options)
    module.prepare_data()
    module.setup()
    return module


def test_pictures_alone(tmp_path: Path, rows: list[Row]) -> None:
    module = data(tmp_path, image_size=(40, 48))
    assert isinstance(module.pictures, MemoryMapped)
    assert module.image_shape == (3, 40, 48)
    assert module.factors == ()
    images = module.pictures.images(torch.arange(12))
    for image, (name, _, _) in zip(images, rows, strict=True):
        with Image.open(tmp_path / "photos" / name) as picture:
            assert np.array_equal(image.numpy(), np.asarray(picture).transpose(2, 0, 1))
    assert [len(ids) for ids in (module.train_ids, module.val_ids, module.test_ids)] == [10, 1, 1]
    batch = next(iter(module.train_dataloader()))
    assert batch.x.shape == (2, 3, 40, 48)
    assert batch.y.shape == (2, 0)
    assert not batch.labelled.any()


def test_pictures_of_mixed_sizes_and_kinds(tmp_path: Path) -> None:
    (tmp_path / "photos" / "deep" / "er").mkdir(parents=True)
    Image.new("RGB", (100, 50), "red").save(tmp_path / "photos" / "a.jpg", quality=95)
    Image.new("L", (7, 9), 100).save(tmp_path / "photos" / "deep" / "b.gif")
    Image.new("CMYK", (30, 30), (0, 0, 0, 0)).save(tmp_path / "photos" / "deep" / "er" / "c.tif")
    module = data(tmp_path, grey=True, batch_size=1)
    assert module.names == ["a.jpg", "deep/b.gif", "deep/er/c.tif"]
    levels = module.pictures.images(torch.arange(3)).float().mean((1, 2, 3))
    assert levels.tolist() == pytest.approx([76, 100, 255], abs=1)


def test_subfolders_are_classes(tmp_path: Path) -> None:
    folder.write(tmp_path / "photos" / "dogs" / "puppies", 3)
    folder.write(tmp_path / "photos" / "cats", 3)
    module = data(tmp_path, folder_classes=True, label_form="index", labels=1.0)
    assert module.factors == (Factor("class", 2, "categorical"),)
    assert module.factors_of(torch.arange(6)).flatten().tolist() == [0, 0, 0, 1, 1, 1]
    folder.write(tmp_path / "photos", 1)
    with pytest.raises(ValueError, match=r"000\.png lies in no subfolder of .*photos: move it"):
        data(tmp_path, folder_classes=True)


def test_a_table_gives_factors_and_labels(tmp_path: Path, rows: list[Row]) -> None:
    table(
        tmp_path / "t.csv", [(name, size if i else None, colour) for i, (name, size, colour) in enumerate(rows)][::-1]
    )
    module = data(tmp_path, labels_file="t.csv", labels=1.0)
    assert module.factors == (Factor("size", 11, "ordered"), Factor("colour", 3, "categorical"))
    ids = torch.arange(12)
    assert module.factors_of(ids)[:, 0].tolist() == list(range(-1, 11))
    assert module.factors_of(ids)[:, 1].tolist() == [0, 1, 2] * 4
    sizes = np.array([row[1] for row in rows[1:]], float)
    expected = (sizes - sizes[0]) / (sizes[-1] - sizes[0])
    labels = module.labels_of(ids)
    assert labels[1:, 0].tolist() == pytest.approx(expected.tolist())
    assert labels[0, 0].isnan()
    assert labels[:4, 1].tolist() == [0, 0.5, 1, 0]


def test_label_forms_of_what_is_not_observed(tmp_path: Path, rows: list[Row]) -> None:
    table(tmp_path / "t.csv", [(rows[0][0], 1, "red"), (rows[1][0], "", "blue"), (rows[2][0], 2, "")])
    by_index = data(tmp_path, labels_file="t.csv", label_form="index").labels_of(torch.arange(4))
    assert by_index.nan_to_num(-9).tolist() == [[0, 1], [-9, 0], [1, -9], [-9, -9]]
    module = data(tmp_path, labels_file="t.csv", label_form="onehot", labelled_factors=["colour"])
    assert module.label_sizes == (2,)
    assert module.labels_of(torch.arange(4)).nan_to_num(-9).tolist() == [[0, 1], [1, 0], [-9, -9], [-9, -9]]


def test_only_pictures_with_labels_are_labelled(tmp_path: Path, rows: list[Row]) -> None:
    table(tmp_path / "t.csv", [(name, size, "") for name, size, _ in rows[:5]], ("file", "size", "note"))
    options: dict[str, Any] = {"labels_file": "t.csv", "factor_columns": ["size"], "val_size": 0, "test_size": 0}
    assert data(tmp_path, labels=1.0, **options).labelled_ids.tolist() == [0, 1, 2, 3, 4]
    assert data(tmp_path, labels=2, labelled_set="first", **options).labelled_ids.tolist() == [0, 1]
    with pytest.raises(ValueError, match="labels=6 must be at least 1 and at most 5"):
        data(tmp_path, labels=6, **options)
    module = data(tmp_path, labels=5, labelled_batch_size=3, **options)
    batch = next(iter(module.train_dataloader()))
    assert batch.labelled.tolist() == [False, False, True, True, True]
    assert not batch.y[2:].isnan().any()
    evaluated = [b for b, _ in module.evaluation_batches(12, "all", 0, torch.device("cpu"))]
    assert sum(int(b.labelled.sum()) for b in evaluated) == 5


def test_hidden_labels_leave_a_known_one(tmp_path: Path, rows: list[Row]) -> None:
    table(tmp_path / "t.csv", [(name, size if i % 2 else "", colour) for i, (name, size, colour) in enumerate(rows)])
    module = data(tmp_path, labels_file="t.csv", labels=1.0, observed=0.01, val_size=0, test_size=0)
    known, labelled = module._known.of(torch.arange(12))
    assert labelled.all()
    assert (~known.isnan()).sum(1).tolist() == [1] * 12


def test_scores_read_bins_or_the_numbers_themselves(tmp_path: Path, rows: list[Row]) -> None:
    table(tmp_path / "t.csv", rows)
    module = data(tmp_path, labels_file="t.csv", factor_bins=3)
    ((_, values),) = module.evaluation_batches(12, "all", 0, torch.device("cpu"))
    sizes = values[:, 0].sort().values
    assert sizes.floor().tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert len(sizes.unique()) == 12
    assert module.factor_sizes == (3, 3)


def test_a_column_divides_the_pictures(tmp_path: Path, rows: list[Row]) -> None:
    parts = ["train", "val", "test", "validation", ""]
    table(tmp_path / "t.csv", [(row[0], part) for row, part in zip(rows, parts, strict=False)], ("file", "split"))
    module = data(tmp_path, labels_file="t.csv")
    assert module.factors == ()
    assert module.train_ids.tolist() == [0, 4, 5, 6, 7, 8, 9, 10, 11]
    assert (module.val_ids.tolist(), module.test_ids.tolist()) == ([1, 3], [2])
    table(tmp_path / "t.csv", [(row[0], "test") for row in rows], ("file", "split"))
    with pytest.raises(ValueError, match="split leaves no training images: mark some as train"):
        data(tmp_path, labels_file="t.csv")


def test_a_parquet_table_is_a_csv_table(tmp_path: Path, rows: list[Row]) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table(tmp_path / "t.csv", [(name, None if i == 3 else size, colour) for i, (name, size, colour) in enumerate(rows)])
    columns = {
        "file": [row[0] for row in rows],
        "size": [None if i == 3 else row[1] for i, row in enumerate(rows)],
        "colour": [row[2] for row in rows],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    one, other = (data(tmp_path, labels_file=name) for name in ("t.csv", "t.parquet"))
    assert one.factors == other.factors
    assert torch.equal(one.table.places, other.table.places)


def test_bare_names_find_files_at_any_depth(tmp_path: Path) -> None:
    folder.write(tmp_path / "photos" / "a", 2)
    shutil.move(tmp_path / "photos" / "a" / "001.png", tmp_path / "photos" / "a" / "only.png")
    folder.write(tmp_path / "photos" / "b", 1)
    table(tmp_path / "t.csv", [("only.png", 1), ("./a/000.png", 2)], ("file", "x"))
    assert data(tmp_path, labels_file="t.csv", batch_size=1).factors_of(torch.arange(3)).flatten().tolist() == [
        1,
        0,
        -1,
    ]
    table(tmp_path / "t.csv", [("000.png", 1)], ("file", "x"))
    with pytest.raises(ValueError, match=r"row 1 names 000\.png, which may be a/000\.png or b/000\.png: give its path"):
        data(tmp_path, labels_file="t.csv")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("name,size\n000.png,1\n", r"t\.csv has no column file, only name, size"),
        ("file,size\nnone.png,1\n", r"row 1 names none\.png, and .*photos holds no such picture: correct"),
        ("file,size\n000.png,1\n000.png,2\n", r"rows 1 and 2 both name 000\.png: remove one"),
        ("file,size\n000.png,inf\n", r"column size holds inf in row 1"),
        ("file,size\n000.png\n", r"cannot be read \(line 2 has 1 cells, the first line 2\)"),
        ("file,size,size\n", r"cannot be read \(its first line must name every column once\)"),
        ("", r"cannot be read \(its first line must name"),
        ("file,size\n", r"t\.csv has no rows"),
        ("file,size\n000.png,\n", r"factor size has no value in any row"),
        ("file,split\n000.png,dev\n", r"row 1 has dev as split: give train, val or test"),
        ('file,size\n"000.png,1\n', r"cannot be read \(unexpected end of data"),
    ],
)
def test_bad_tables(content: str, what: str, tmp_path: Path, rows: list[Row]) -> None:
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(ValueError, match=what):
        data(tmp_path, labels_file="t.csv")


def test_bad_options(tmp_path: Path, rows: list[Row]) -> None:
    with pytest.raises(FileNotFoundError, match=r"labels_file .*t\.csv is not there"):
        data(tmp_path, labels_file="t.csv")
    with pytest.raises(ValueError, match=r"t\.txt is no table: give a \.csv or \.parquet file"):
        data(tmp_path, labels_file="t.txt")
    (tmp_path / "t.csv").write_bytes(b"file\n\xff\xfe\n")
    with pytest.raises(ValueError, match=r"t\.csv cannot be read \('utf-8' codec"):
        data(tmp_path, labels_file="t.csv")
    with pytest.raises(ValueError, match="both give labels: choose one"):
        data(tmp_path, labels_file="t.csv", folder_classes=True)
    with pytest.raises(ValueError, match="image_size must be at least 1"):
        data(tmp_path, image_size=(32, 0))
    with pytest.raises(ValueError, match=r"labels=1\.0, but no training image has a label: leave labels out"):
        data(tmp_path, labels=1.0)
    with pytest.raises(ValueError, match="labelled_factors size not known: the data has no factors"):
        data(tmp_path, labelled_factors=["size"])


def damage(tmp_path: Path) -> None:
    whole = (tmp_path / "photos" / "003.png").read_bytes()
    (tmp_path / "photos" / "003.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "photos" / "007.png").write_text("no picture")


def test_a_broken_picture_is_an_error_that_names_it(tmp_path: Path, rows: list[Row]) -> None:
    damage(tmp_path)
    with pytest.raises(ValueError, match=r"003\.png cannot be used \(.+\): replace or remove .* skip_broken: true$"):
        data(tmp_path)


def test_broken_pictures_are_left_out_and_counted(tmp_path: Path, rows: list[Row]) -> None:
    damage(tmp_path)
    table(tmp_path / "t.csv", [(*row, "val" if i == 8 else "train") for i, row in enumerate(rows)], (*"fsc", "split"))
    options: dict[str, Any] = {"labels_file": "t.csv", "skip_broken": True, "file_column": "f", "image_size": (40, 48)}
    said = r"2 of 12 pictures in .*photos are broken, 003\.png first \(.+\); they are left out"
    for _ in range(2):  # when the cache is built, and when it is found
        with pytest.warns(UserWarning, match=said):
            module = data(tmp_path, **options)
        assert len(module.pictures) == len(module.names) == 10
        assert module.names[6:] == ["008.png", "009.png", "010.png", "011.png"]
        assert module.val_ids.tolist() == [6]
        assert module.factors_of(torch.arange(10))[:, 0].tolist() == [0, 1, 2, 4, 5, 6, 8, 9, 10, 11]
        with Image.open(tmp_path / "photos" / "008.png") as picture:
            pixels = np.asarray(picture).transpose(2, 0, 1)
        assert np.array_equal(module.pictures.images(torch.tensor([6]))[0].numpy(), pixels)
    with pytest.raises(ValueError, match=r"003\.png cannot be used"):  # the cache of the others is no excuse
        data(tmp_path, image_size=(40, 48))


def test_a_link_that_leads_out_is_refused(tmp_path: Path, rows: list[Row]) -> None:
    folder.disk(40, 48, 5, "red").save(tmp_path / "private.png")
    (tmp_path / "photos" / "012.png").symlink_to(tmp_path / "private.png")
    with pytest.raises(ValueError, match=r"012\.png cannot be used \(.*leads out of"):
        data(tmp_path)


@pytest.mark.parametrize("change", ["content", "time", "places", "new", "gone", "name"])
def test_a_change_of_any_file_makes_the_cache_anew(change: str, tmp_path: Path, rows: list[Row]) -> None:
    before = data(tmp_path).pictures.images(torch.arange(12))
    photos = tmp_path / "photos"
    stamp = (photos / "005.png").stat()
    if change == "content":
        folder.disk(40, 48, 3, "blue").save(photos / "005.png")
    elif change == "time":
        os.utime(photos / "005.png", ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    elif change == "places":
        (photos / "005.png").rename(photos / "x")
        (photos / "004.png").rename(photos / "005.png")
        (photos / "x").rename(photos / "004.png")
    elif change == "new":
        folder.disk(40, 48, 3, "blue").save(photos / "0005.png")
    elif change == "gone":
        (photos / "005.png").unlink()
    else:
        (photos / "005.png").rename(photos / "999.png")
    module = data(tmp_path)
    shutil.copytree(photos, tmp_path / "fresh" / "photos", ignore=shutil.ignore_patterns(".cache"))
    ids = torch.arange(len(module.names))
    assert torch.equal(module.pictures.images(ids), data(tmp_path / "fresh").pictures.images(ids))
    assert change == "time" or not torch.equal(module.pictures.images(torch.arange(11)), before[:11])


def test_a_cache_is_built_once_for_each_preparation(tmp_path: Path, rows: list[Row]) -> None:
    for _ in range(2):
        for options in ({}, {"grey": True}, {"fit": "pad"}, {"background": "white"}, {"image_size": 33}):
            data(tmp_path, **options)
    caches = [path for path in (tmp_path / "photos" / ".cache").iterdir() if path.is_dir()]
    assert len(caches) == 5


def test_postscript_under_another_name_is_never_run(tmp_path: Path, rows: list[Row]) -> None:
    folder.disk(40, 48, 5, "red").save(tmp_path / "a.eps")
    shutil.move(tmp_path / "a.eps", tmp_path / "photos" / "003.png")
    with pytest.raises(ValueError, match=r"003\.png cannot be used \(cannot identify image file\)"):
        data(tmp_path)


def test_progress_is_shown(tmp_path: Path, rows: list[Row], capsys: pytest.CaptureFixture[str]) -> None:
    data(tmp_path)
    assert "pictures-32x32-rgb-crop-black: building cache: 100%" in capsys.readouterr().err
