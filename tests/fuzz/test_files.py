"""Files of datasets, damaged at random: read as they were, or refused in one line, and never cached when refused."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from datamodules import CelebADataModule, ChairsDataModule, MNISTDataModule
from datamodules.base import ImageDataModule
from tests.helpers.datasets import cars3d, celeba, chairs, dsprites, isaac3d, mnist, mpi3d, shapes3d, smallnorb
from tests.helpers.harness import INTERNALS, tries

pytestmark = pytest.mark.xdist_group("files")  # one worker makes what all of them read


def _mnist(folder: Path) -> None:
    for prefix, count in (("train", 40), ("t10k", 15)):
        raw = folder / "MNIST" / "raw"
        mnist.write(raw, prefix, mnist.pictures(count, 0), torch.arange(count) % 10)


SPLIT = {"val_size": 4, "batch_size": 2}
WRITERS: dict[str, tuple[Callable[[Path], Any], Callable[..., ImageDataModule], dict[str, Any]]] = {
    "dsprites": (dsprites.write, dsprites.Small, {"source": "file", "test_size": 4} | SPLIT),
    "shapes3d": (shapes3d.write, shapes3d.Small, {"source": "file", "test_size": 4} | SPLIT),
    "isaac3d": (isaac3d.write, isaac3d.Small, {"test_size": 4, "image_size": 8} | SPLIT),
    "mpi3d": (mpi3d.write, mpi3d.Small, {"test_size": 4} | SPLIT),
    "cars3d": (cars3d.write, cars3d.Small, {"image_size": 8} | SPLIT),
    "smallnorb": (smallnorb.write, smallnorb.Small, {"image_size": 8} | SPLIT),
    "chairs": (chairs.write, ChairsDataModule, {"image_size": 8} | SPLIT),
    "celeba": (celeba.write, CelebADataModule, {"image_size": 8, "batch_size": 2}),
    "mnist": (_mnist, MNISTDataModule, SPLIT),
}


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("originals")
    for name, (write, _, _) in WRITERS.items():
        (folder / name).mkdir()
        write(folder / name)
    return folder


@pytest.fixture(autouse=True)
def _any_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    celeba.take_any_checksum(monkeypatch)  # torchvision would refuse any change at once


def damaged(data: bytes, kind: str, place: float, value: int) -> bytes | None:
    data = data or b"\0"
    at = int(place * (len(data) - 1))
    if kind == "cut":
        return data[:at]
    if kind == "flip":
        return data[:at] + bytes([data[at] ^ (1 << value % 8)]) + data[at + 1 :]
    if kind == "byte":
        return data[:at] + bytes([value]) + data[at + 1 :]
    if kind == "zeros":
        return data[:at] + bytes(min(64, len(data) - at)) + data[at + 64 :]
    return {"empty": b"", "longer": data + b"xyz", "text": b"hello\n", "missing": None, "folder": b"folder"}[kind]


KINDS = ["cut", "flip", "byte", "zeros", "empty", "longer", "text", "missing", "folder"]


def opened(module: Callable[..., ImageDataModule], folder: Path, options: dict[str, Any]) -> tuple[Any, Any]:
    data = module(data_dir=folder, **options)
    data.prepare_data()
    data.setup()
    ids = torch.arange(len(data.pictures))
    return data.pictures.images(ids).numpy(), data.labels_of(ids).numpy()


@pytest.mark.parametrize("name", WRITERS)
def test_a_damaged_file(name: str, originals: Path, tmp_path: Path) -> None:
    _, module, options = WRITERS[name]
    images, labels = opened(module, originals / name, options)
    files = sorted(
        p.relative_to(originals / name)
        for p in (originals / name).rglob("*")
        if p.is_file() and ".cache" not in p.parts
    )
    # One picture says as much as another: files that are alone in their folder come as often as all pictures together.
    few = [p for p in files if sum(q.parent == p.parent for q in files) < 8] + files[:2]

    @tries(12)
    @given(st.sampled_from(few), st.sampled_from(KINDS), st.floats(0, 1), st.integers(0, 255))
    def check(file: Path, kind: str, place: float, value: int) -> None:
        folder = tmp_path / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(originals / name, folder, ignore=shutil.ignore_patterns(".cache"))
        content = damaged((folder / file).read_bytes(), kind, place, value)
        (folder / file).unlink()
        if kind == "folder":
            (folder / file).mkdir()
        elif content is not None:
            (folder / file).write_bytes(content)
        try:
            found, known = opened(module, folder, options)
        except (ValueError, OSError) as error:
            message = " ".join(str(error).split())
            assert ": " in message, message  # what is wrong: what to do
            assert str(folder) in message, message
            assert not INTERNALS.search(message), message
            caches = [path for path in (folder / ".cache").glob("*") if path.is_dir()]
            assert not caches, "what was refused must not be cached"
        else:  # a change that no reader can know of, such as another label or pixel, or a file that is not read
            assert found.shape[1:] == images.shape[1:]
            assert known.dtype == labels.dtype
            assert np.isfinite(known).all()

    check()


@pytest.mark.parametrize("content", ["[" * 100_000, "{", "[]", "3", '{"version": 1}', "\x00", '{"checksums": []}'])
def test_a_manifest_of_anything_is_built_again(content: str, originals: Path, tmp_path: Path) -> None:
    _, module, options = WRITERS["shapes3d"]
    shutil.copytree(originals / "shapes3d", tmp_path / "data")
    images, _ = opened(module, tmp_path / "data", options)
    (manifest,) = (tmp_path / "data").glob(".cache/*/manifest.json")
    manifest.write_text(content)
    assert np.array_equal(opened(module, tmp_path / "data", options)[0], images)
