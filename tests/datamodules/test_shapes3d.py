"""3DShapes from small files in the official layout."""

import subprocess
import sys
import warnings
from math import prod
from pathlib import Path
from typing import Any, cast

import h5py
import numpy as np
import pytest
import torch

from datamodules import grids, shapes3d
from datamodules.factors import ravel
from datamodules.loader import BatchLoader
from datamodules.renderers.shapes3d import Shapes3DRenderer
from datamodules.shapes3d import Shapes3DDataModule
from datamodules.sources import MemoryMapped, Rendered
from tests.helpers.datasets.shapes3d import IMAGES, LABELS, SIZES, Small, write


def test_the_official_layout() -> None:
    module = Shapes3DDataModule(source="render")
    assert module.factor_names == ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
    ids = torch.tensor([[48000, 4800, 480, 60, 15, 1]]).T.flatten()
    assert module.factors_of(ids).equal(torch.eye(6, dtype=torch.long))
    assert prod(module.factor_sizes) == 480_000
    assert module.image_shape == (3, 64, 64)


def test_pictures_of_the_file(tmp_path: Path) -> None:
    write(tmp_path)
    module = Small(data_dir=tmp_path, source="file")
    ids = torch.randperm(len(IMAGES), generator=torch.Generator().manual_seed(0))
    assert isinstance(module.pictures, MemoryMapped)
    assert np.array_equal(module.pictures.images(ids).numpy(), IMAGES[ids].transpose(0, 3, 1, 2))
    # Factor indices lead to the picture whose label holds their values.
    factors = torch.tensor([[1, 0, 2, 1, 0, 2]])
    (row,) = np.flatnonzero((LABELS == [0.1, 0.0, 0.2, 1.25, 0.0, 30.0]).all(1))
    assert np.array_equal(module.images_at(factors)[0].numpy(), IMAGES[row].transpose(2, 0, 1).astype(np.float32) / 255)


@pytest.mark.parametrize("chunks", [None, (1, 64, 64, 3), (50, 4, 4, 1)])
@pytest.mark.parametrize("step", [11, 1024])  # 143 of 144 pictures are a multiple of 11
def test_any_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: Any, step: int) -> None:
    monkeypatch.setattr(shapes3d, "STEP", step)
    with h5py.File(tmp_path / "3dshapes.h5", "w") as file:
        file.create_dataset("images", data=IMAGES, chunks=chunks, compression="gzip" if chunks else None)
        file.create_dataset("labels", data=LABELS)
    pictures = Small(data_dir=tmp_path).pictures
    assert np.array_equal(pictures.images(torch.arange(len(IMAGES))).numpy(), IMAGES.transpose(0, 3, 1, 2))


def test_training_batches(tmp_path: Path) -> None:
    write(tmp_path)
    module = Small(data_dir=tmp_path, batch_size=8, val_size=10, test_size=10, labels=20, label_form="index")
    module.prepare_data()
    module.setup()
    (batch, *_) = cast(BatchLoader, module.val_dataloader())
    ids = module.val_ids[:8]
    assert batch.x.equal(module.pictures.images(ids))
    assert batch.y.equal(module.factors_of(ids).float())
    assert next(iter(module.train_dataloader())).x.shape == (16, 3, 64, 64)


def test_auto_takes_the_file(tmp_path: Path) -> None:
    write(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Small(data_dir=tmp_path).source == "file"


def test_auto_draws_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"3dshapes\.h5 is not there: .* drawn by Shapes3DRenderer instead") as caught:
        module = Shapes3DDataModule(data_dir=tmp_path)
    assert len(caught) == 1
    assert module.source == "render"
    assert isinstance(module.pictures, Rendered)
    ids = torch.tensor([0, 123_456, 479_999])
    drawn = Shapes3DRenderer().draw(module.factors_of(ids))
    assert module.pictures.images(ids).equal(drawn)


def test_render_draws_without_a_warning(tmp_path: Path) -> None:
    write(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = Shapes3DDataModule(data_dir=tmp_path, source="render")
    assert module.source == "render"
    assert isinstance(module.pictures, Rendered)


@pytest.mark.parametrize("source", ["auto", "file"])
def test_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Any) -> None:
    asked = []

    def fetch(url: str, target: Path, md5: str) -> None:
        asked.append((url, target, md5))
        write(target.parent)

    monkeypatch.setattr(grids, "download", fetch)
    module = Small(data_dir=tmp_path, source=source, download=True)
    assert module.source == "file"
    assert not asked  # not before the data is prepared
    module.prepare_data()
    url = "https://storage.googleapis.com/3d-shapes/3dshapes.h5"
    assert asked == [(url, tmp_path / "3dshapes.h5", "099a2078d58cec4daad0702c55d06868")]
    Small(data_dir=tmp_path, source=source, download=True).prepare_data()
    assert len(asked) == 1


def test_a_missing_file(tmp_path: Path) -> None:
    module = Small(data_dir=tmp_path, source="file")
    with pytest.raises(FileNotFoundError, match=r"3dshapes\.h5 is not there: fetch it from https://.* source=render"):
        module.prepare_data()


def test_a_new_file_makes_a_new_cache(tmp_path: Path) -> None:
    write(tmp_path)
    Small(data_dir=tmp_path).prepare_data()
    write(tmp_path, 255 - IMAGES)
    ids = torch.arange(9)
    assert np.array_equal(Small(data_dir=tmp_path).pictures.images(ids).numpy(), 255 - IMAGES[:9].transpose(0, 3, 1, 2))


SWAPPED = LABELS[[*range(100), 101, 100, *range(102, 144)]]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"images": IMAGES[:-1]}, r"images is uint8 \(143, 64, 64, 3\), not uint8 \(144, 64, 64, 3\)"),
        ({"images": IMAGES.transpose(0, 3, 1, 2)}, r"images is uint8 \(144, 3, 64, 64\)"),
        ({"images": IMAGES.astype(np.int16)}, "images is int16"),
        ({"images": None}, "images"),
        ({"labels": None}, "labels"),
        ({"labels": LABELS[:, :5]}, r"labels is float64 \(144, 5\), not float64 \(144, 6\)"),
        ({"labels": LABELS.astype(np.float32)}, "labels is float32"),
        ({"labels": SWAPPED}, "column 5 of the labels does not follow the official order"),
        ({"labels": LABELS[:, ::-1]}, "column 0 of the labels does not follow the official order"),
        ({"labels": np.full_like(LABELS, np.nan)}, "column 0 of the labels does not follow the official order"),
        ({"labels": LABELS * [1, 1, 1, np.nan, 1, 1]}, "column 3 of the labels does not follow the official order"),
        ({"labels": LABELS[::-1] * [1, 1, 1, 1, 1, 0]}, "column 5 of the labels does not follow the official order"),
    ],
)
def test_a_file_of_another_layout(tmp_path: Path, content: dict[str, Any], complaint: str) -> None:
    write(tmp_path, **content)
    with pytest.raises(
        ValueError, match=rf"3dshapes\.h5 is not the official file \(.*{complaint}.*delete it and fetch"
    ):
        Small(data_dir=tmp_path).prepare_data()
    assert not (tmp_path / ".cache" / "3dshapes").exists()


class Drawn(Small):
    """The small grid with a renderer of its own, which is off by 3 of 255 as the real one is."""

    class renderer:  # noqa: N801
        factor_sizes = SIZES

        def draw(self, factors: torch.Tensor) -> torch.Tensor:
            images = torch.from_numpy(IMAGES[ravel(factors, SIZES).numpy()]).permute(0, 3, 1, 2)
            return torch.where(images < 252, images + 3, images)


@pytest.mark.parametrize("mix", [lambda x: x[::-1], np.random.default_rng(0).permutation, lambda x: np.roll(x, 12, 0)])
def test_pictures_in_another_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mix: Any) -> None:
    monkeypatch.setattr(shapes3d, "STEP", 4)  # 36 blocks
    write(tmp_path)
    Drawn(data_dir=tmp_path).prepare_data()
    write(tmp_path, mix(IMAGES))
    with pytest.raises(ValueError, match=r"3dshapes\.h5 is not the official file \(its pictures are others, or in"):
        Drawn(data_dir=tmp_path).prepare_data()
    assert not (tmp_path / ".cache" / "3dshapes").exists()


@pytest.mark.parametrize("size", [0, 100, 5000, 1_000_000])
def test_a_truncated_file(tmp_path: Path, size: int) -> None:
    path = write(tmp_path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"3dshapes\.h5 is not the official file \(.*delete it and fetch it again"):
        Small(data_dir=tmp_path).prepare_data()


def test_a_damaged_chunk(tmp_path: Path) -> None:
    path = write(tmp_path)
    with h5py.File(path) as file:
        place = file["images"].id.get_chunk_info(file["images"].id.get_num_chunks() - 1)
    data = bytearray(path.read_bytes())
    data[place.byte_offset : place.byte_offset + place.size] = bytes(place.size)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"3dshapes\.h5 is not the official file \(.*delete it and fetch it again"):
        Small(data_dir=tmp_path).prepare_data()
    assert not (tmp_path / ".cache" / "3dshapes").exists()


MEMORY = """
import sys
from pathlib import Path
import h5py, numpy as np
from datamodules.factors import Factor
from datamodules.shapes3d import Shapes3DDataModule

def peak(reset=False):
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024

class Large(Shapes3DDataModule):  # 16,000 pictures, 197 MB
    factors = tuple(Factor(f.name, s) for f, s in zip(Shapes3DDataModule.factors, (10, 10, 10, 8, 2, 1)))

folder = Path(sys.argv[1])
with h5py.File(folder / "3dshapes.h5", "w") as file:
    grid = np.stack(np.unravel_index(np.arange(16_000), Large(source="render").factor_sizes), axis=1)
    file.create_dataset("labels", data=grid.astype(float), compression="gzip")
    images = file.create_dataset("images", (16_000, 64, 64, 3), np.uint8, compression="gzip", compression_opts=1,
                                 chunks=(40, 64, 64, 3))
    for first in range(0, 16_000, 40):
        images[first : first + 40] = (first // 40) % 251
module = Large(data_dir=folder, batch_size=256, val_size=0, test_size=0)
before = peak(reset=True)
module.prepare_data()
module.setup()
built = peak() - before
before = peak(reset=True)
for batch in module.train_dataloader():
    pass
print(built, peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured as Linux does")
def test_resident_memory_stays_flat(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, "-c", MEMORY, str(tmp_path)], capture_output=True, text=True, timeout=200)
    assert not run.returncode, run.stderr
    built, trained = map(int, run.stdout.split())  # megabytes more than before
    assert (tmp_path / ".cache" / "3dshapes" / "images.u8").stat().st_size == 16_000 * 64 * 64 * 3
    assert built < 100
    assert trained < 100
