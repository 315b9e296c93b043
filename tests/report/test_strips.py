"""What is drawn from a checkpoint."""

import base64
import io
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

import vaezoo
from datamodules import ImageDataModule
from vaezoo.report import strips
from vaezoo.report.data import first_images
from vaezoo.report.pictures import Picture, from_tensors
from vaezoo.report.runs import read_run
from vaezoo.report.strips import Limits, draw_run
from vaezoo.runs.data import RunData
from vaezoo.runs.folder import RunFolder

pytestmark = pytest.mark.xdist_group("report")
LIMITS = Limits(starts=2, steps=5, images=3)


def images_of_runs() -> RunData:
    return RunData(ImageDataModule, keep=first_images)


def pixels(picture: Picture) -> np.ndarray:
    image = Image.open(io.BytesIO(base64.b64decode(picture.src.partition(",")[2])))
    assert image.size == (picture.width, picture.height)
    return np.asarray(image, dtype=float) / 255


def test_strips_show_the_traversals_of_real_images_and_of_the_prior(
    joint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures: dict[str, list[list[torch.Tensor]]] = {}

    def keep(name: str, rows: list[torch.Tensor], side: int, gap: int = 0) -> Picture:
        pictures.setdefault(name, []).append(rows)
        return Picture(name, "", side, gap)

    monkeypatch.setattr(strips, "from_tensors", keep)
    run, images = read_run(joint), images_of_runs()
    drawn = draw_run(run, images, LIMITS)
    assert drawn is not None
    assert not run.notes
    assert drawn.starts == ["validation image 1", "validation image 2", "middle of the prior"]
    assert sorted(unit.name for unit in drawn.units) == ["c0", "c1", "z0", "z1"]
    model, x = vaezoo.load(joint / "checkpoints" / "last.ckpt"), images.of(RunFolder(joint))[0].batch.x
    nats = {f"{name}{i}": v for name, values in model.unit_nats(x).items() for i, v in enumerate(values.tolist())}
    assert [unit.nats for unit in drawn.units] == pytest.approx(sorted(nats.values(), reverse=True))
    units = {unit.name: unit for unit in drawn.units}
    assert units["z1"].values == ["−2.00", "−1.00", "0.00", "1.00", "2.00"]
    assert units["c1"].values == [f"class {k}" for k in range(4)]
    for name, latent, unit in (("z1", "z", 1), ("c1", "c", 1)):
        assert units[name].nats == pytest.approx(nats[name])
        expected = [*model.traverse(x[:2], latent, [unit], 5)[0], *model.traverse(None, latent, [unit], 5)[0]]
        for (frames,), walk in zip(pictures[name], expected, strict=True):
            torch.testing.assert_close(frames, walk)
    ((above, below),) = pictures[drawn.reconstructions.name]
    torch.testing.assert_close(above, x[:3])
    torch.testing.assert_close(below, model.reconstruct(x[:3]))


def test_where_nothing_is_held_out_training_images_are_drawn_and_named(joint: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(joint, tmp_path / "run")
    config = yaml.safe_load((folder / "config.yaml").read_text())
    config["data"]["init_args"] |= {"val_size": 0, "test_size": 0}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    drawn = draw_run(read_run(folder), images_of_runs(), LIMITS)
    assert drawn is not None
    assert (drawn.starts[0], drawn.measured) == ("training image 1", "4 training images")


def test_every_group_is_drawn_however_few_units_may_be(joint: Path) -> None:
    drawn = draw_run(read_run(joint), images_of_runs(), LIMITS._replace(units=1))
    assert drawn is not None
    assert len(drawn.units) == 4
    assert sorted(unit.name[0] for unit in drawn.units if unit.strips) == ["c", "z"]


@pytest.mark.parametrize("data", [{"class_path": "MNISTDataModule"}, {"class_path": "os.path"}, None])
def test_without_data_the_prior_is_drawn(joint: Path, tmp_path: Path, data: object) -> None:
    folder = shutil.copytree(joint, tmp_path / "run")
    config = yaml.safe_load((folder / "config.yaml").read_text())
    if isinstance(data, dict):
        data["init_args"] = {"data_dir": str(tmp_path / "none"), "download": True}
    (folder / "config.yaml").write_text(yaml.safe_dump(config | {"data": data}))
    run = read_run(folder)
    drawn = draw_run(run, images_of_runs(), LIMITS)
    assert drawn is not None
    assert drawn.starts == ["middle of the prior"]
    assert all(len(unit.strips) == 1 for unit in drawn.units)
    assert "no images of the data" in run.notes[0]


def test_a_broken_checkpoint_is_noted(joint: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(joint, tmp_path / "run")
    (folder / "checkpoints" / "last.ckpt").write_bytes(b"not a checkpoint")
    run = read_run(folder)
    assert draw_run(run, images_of_runs(), LIMITS) is None
    assert "last.ckpt could not be loaded" in run.notes[0]


def test_pictures_are_laid_out_row_by_row() -> None:
    tiles = torch.linspace(0, 1, 6).reshape(2, 3, 1, 1, 1).expand(-1, -1, 3, 16, 16)
    picture = pixels(from_tensors("grid", list(tiles), side=8, gap=2))
    assert picture.shape == (18, 28, 3)
    assert picture[4::10, 4::10, 0] == pytest.approx(tiles[:, :, 0, 0, 0].numpy(), abs=0.02)
    assert picture[8:10] == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("channels", [1, 2, 3, 5])
def test_pictures_of_any_number_of_channels(channels: int) -> None:
    image = torch.full((2, channels, 8, 4), 0.2)
    image[1] = torch.nan
    picture = from_tensors("odd", [image], side=8)
    assert (picture.width, picture.height) == (8, 8)
    assert pixels(picture)[:, :4] == pytest.approx(0.2, abs=0.02)
