"""Caches: built once, found again, rebuilt when wrong, and never left half done."""

import errno
import json
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from datamodules import cache
from datamodules.cache import cached, origin_of

SHAPE = (10, 3, 4, 5)
ORIGIN = {"size": 7, "mtime_ns": 8}
PIXELS = np.random.default_rng(0).integers(0, 256, SHAPE, dtype=np.uint8)
FORK = multiprocessing.get_context("fork")


class Source:
    """Counts how often it is read."""

    def __init__(self, pixels: NDArray[np.uint8] = PIXELS) -> None:
        self.pixels, self.reads = pixels, 0

    def __call__(self) -> Iterator[NDArray[np.uint8]]:
        self.reads += 1
        yield from np.array_split(self.pixels, 3)


def opened(folder: Path, source: Any, origin: dict[str, int] = ORIGIN, shape: tuple[int, ...] = SHAPE) -> Any:
    return cached(folder, origin, shape, source).images(torch.arange(shape[0])).numpy()  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".cache" / "toy"


def test_built_once_then_found(folder: Path) -> None:
    source = Source()
    assert np.array_equal(opened(folder, source), PIXELS)
    assert np.array_equal(opened(folder, source), PIXELS)
    assert source.reads == 1
    assert sorted(path.name for path in folder.iterdir()) == ["images.u8", "manifest.json"]
    assert sorted(path.name for path in folder.parent.iterdir()) == ["toy", "toy.lock"]


def test_the_file_and_the_manifest(folder: Path) -> None:
    # Blocks need not be contiguous: pictures with channels last come transposed.
    opened(folder, lambda: [np.ascontiguousarray(PIXELS.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)])
    assert (folder / "images.u8").read_bytes() == PIXELS.tobytes()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["version"] == cache.VERSION
    assert manifest["source"] == ORIGIN
    assert manifest["shape"] == list(SHAPE)
    assert len(manifest["checksums"]) == 1


def test_progress_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened(folder, Source())
    assert "toy: building cache: 100%" in capsys.readouterr().err


def test_origin_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"12345")
    before = origin_of(path)
    assert before["size"] == 5
    os.utime(path, ns=(1, before["mtime_ns"] + 1))
    assert origin_of(path) != before


@pytest.mark.parametrize("change", [{"size": 1}, {"mtime_ns": 1}, {"new": 1}])
def test_another_origin_is_stale(folder: Path, change: dict[str, int]) -> None:
    opened(folder, Source())
    source = Source(255 - PIXELS)
    assert np.array_equal(opened(folder, source, ORIGIN | change), 255 - PIXELS)
    assert source.reads == 1


def test_another_shape_or_version_is_stale(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source()
    opened(folder, source)
    opened(folder, source, shape=(10, 3, 5, 4))
    assert source.reads == 2
    monkeypatch.setattr(cache, "VERSION", cache.VERSION + 1)
    opened(folder, source, shape=(10, 3, 5, 4))
    assert source.reads == 3


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: os.truncate(folder / "images.u8", 599),
        lambda folder: os.truncate(folder / "images.u8", 601),
        lambda folder: flip(folder / "images.u8", 0),
        lambda folder: flip(folder / "images.u8", 321),
        lambda folder: (folder / "images.u8").unlink(),
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: os.truncate(folder / "manifest.json", 20),
        lambda folder: (folder / "manifest.json").write_text("[]"),
        lambda folder: (folder / "manifest.json").write_text("{}"),
        lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe"),
    ],
)
def test_damage_is_found_and_repaired(folder: Path, damage: Any) -> None:
    source = Source()
    opened(folder, source)
    damage(folder)
    assert np.array_equal(opened(folder, source), PIXELS)
    assert source.reads == 2


def test_sampled_chunks_of_a_large_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "CHUNK", 7)  # 600 bytes: 86 chunks, the last of 5
    monkeypatch.setattr(cache, "SAMPLES", 6)  # chunks 0, 17, 34, 51, 68, 85
    source = Source()
    opened(folder, source)
    for reads, place in enumerate([0, 6, 7 * 17, 7 * 34 + 3, 7 * 51, 7 * 68 + 6, 599], start=2):
        flip(folder / "images.u8", place)
        assert np.array_equal(opened(folder, source), PIXELS)
        assert source.reads == reads


def test_bytes_too_many(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "CHUNK", 600)  # what comes after the last chunk is in none
    source = Source()
    opened(folder, source)
    os.truncate(folder / "images.u8", 601)
    assert np.array_equal(opened(folder, source), PIXELS)
    assert source.reads == 2


def test_a_disk_that_keeps_other_bytes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = cache._write

    def damaging(path: Path, *args: Any) -> int:
        checksum = written(path, *args)
        flip(path, 100)
        return checksum

    monkeypatch.setattr(cache, "_write", damaging)
    with pytest.raises(OSError, match="what is read back differs from what was written"):
        opened(folder, Source())
    assert nothing_left(folder)


def nothing_left(folder: Path) -> bool:
    return not folder.exists() and [path.name for path in folder.parent.iterdir()] in ([], ["toy.lock"])


@pytest.mark.parametrize("error", [ValueError("damaged picture"), FileNotFoundError("no picture"), KeyboardInterrupt()])
def test_errors_of_the_source_pass_and_leave_nothing(folder: Path, error: BaseException) -> None:
    def broken() -> Iterator[NDArray[np.uint8]]:
        yield PIXELS[:5]
        raise error

    with pytest.raises(type(error)) as raised:
        opened(folder, broken)
    assert raised.value is error
    assert nothing_left(folder)


@pytest.mark.parametrize("pixels", [PIXELS[:9], np.concatenate([PIXELS, PIXELS])])
def test_a_source_of_another_length(folder: Path, pixels: NDArray[np.uint8]) -> None:
    with pytest.raises(ValueError, match=rf"gave {pixels.size} bytes of images, not the 600 expected"):
        opened(folder, Source(pixels))
    assert nothing_left(folder)


def test_processes_that_start_at_once_build_once(folder: Path, tmp_path: Path) -> None:
    def slow() -> Iterator[NDArray[np.uint8]]:
        (tmp_path / f"read by {os.getpid()}").touch()
        for block in np.array_split(PIXELS, 5):
            time.sleep(0.05)
            yield block

    def run() -> None:
        raise SystemExit(0 if np.array_equal(opened(folder, slow), PIXELS) else 1)

    processes = [FORK.Process(target=run) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(20)
    assert [process.exitcode for process in processes] == [0] * 4
    assert len(list(tmp_path.glob("read by *"))) == 1


def test_a_killed_builder_leaves_no_trap(folder: Path, tmp_path: Path) -> None:
    def endless() -> Iterator[NDArray[np.uint8]]:
        yield PIXELS[:4]
        (tmp_path / "started").touch()
        time.sleep(60)

    process = FORK.Process(target=opened, args=(folder, endless))
    process.start()
    while not (tmp_path / "started").exists():
        time.sleep(0.01)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join(20)
    assert not folder.exists()
    assert np.array_equal(opened(folder, Source()), PIXELS)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["toy", "toy.lock"]


@pytest.mark.parametrize("foreseen", [True, False])
def test_a_full_disk(small_disk: Path, foreseen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not foreseen:  # space that another program takes meanwhile
        monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1 << 40, 0, 1 << 40))
    folder, source = small_disk / ".cache" / "toy", Source(np.zeros((30, 3, 32, 32), np.uint8))
    with pytest.raises(OSError, match=r"cannot write the cache .*toy of 0\.0 GB \(No space left on device\): free"):
        opened(folder, source, shape=(30, 3, 32, 32))
    assert source.reads == (not foreseen)
    assert nothing_left(folder)
    assert np.array_equal(opened(folder, Source()), PIXELS)  # what fits still does


def test_a_limit_on_file_sizes(folder: Path) -> None:
    resource = pytest.importorskip("resource")

    def run() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
        try:
            opened(folder, Source())
        except OSError as error:
            raise SystemExit(os.strerror(errno.EFBIG) not in str(error)) from error
        raise SystemExit(2)

    process = FORK.Process(target=run)
    process.start()
    process.join(20)
    assert process.exitcode == 0
    assert nothing_left(folder)


def test_a_file_in_place_of_the_folder(folder: Path) -> None:
    folder.parent.write_text("")
    with pytest.raises(OSError, match=r"cannot write the cache .*toy.*File exists.*data_dir to a writable folder"):
        opened(folder, Source())


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder that this process may read and not write; for root, by being nobody meanwhile."""
    folder = Path(tempfile.mkdtemp())
    opened(folder / ".cache" / "toy", Source())
    for path in (folder / ".cache", folder):
        path.chmod(0o555)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)
        yield folder
    finally:
        os.seteuid(user)
        for path in (folder, folder / ".cache"):
            path.chmod(0o755)
        shutil.rmtree(folder)


def test_an_unwritable_folder(read_only: Path) -> None:
    source = Source()
    with pytest.raises(OSError, match=r"cannot write the cache .*other.*\(Permission denied\).*writable folder"):
        opened(read_only / ".cache" / "other", source)
    assert source.reads == 0


def test_a_good_cache_is_read_from_an_unwritable_folder(read_only: Path) -> None:
    source = Source()
    assert np.array_equal(opened(read_only / ".cache" / "toy", source), PIXELS)
    assert source.reads == 0


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder of the user's own, as a cache of the same name would lie there."""
    folder = tmp_path / "precious" / "toy"
    folder.mkdir(parents=True)
    for name in ("thesis.tex", "manifest.json", "images.u8"):
        (folder / name).write_text("mine")
    return folder


def untouched(precious: Path) -> bool:
    return sorted(path.read_text() for path in precious.iterdir()) == ["mine"] * 3


@pytest.mark.parametrize("linked", [".cache", ".cache/toy", ".cache/toy.part", ".cache/toy/images.u8"])
def test_no_link_is_followed(folder: Path, precious: Path, tmp_path: Path, linked: str) -> None:
    target = {".cache": precious.parent, ".cache/toy/images.u8": precious / "images.u8"}.get(linked, precious)
    (tmp_path / linked).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / linked).symlink_to(target)
    with pytest.raises(ValueError, match=rf"{linked} is a link: a cache follows none"):
        opened(folder, Source())
    assert untouched(precious)


def test_a_lock_that_is_a_link_is_not_written(folder: Path, precious: Path) -> None:
    folder.parent.mkdir()
    (folder.parent / "toy.lock").symlink_to(precious / "thesis.tex")
    with pytest.raises(ValueError, match=r"toy\.lock is a link"):
        opened(folder, Source())
    assert untouched(precious)


@pytest.mark.parametrize("name", ["toy", "toy.part"])
def test_files_that_are_no_part_of_a_cache_stay(folder: Path, precious: Path, name: str) -> None:
    folder.parent.mkdir()
    precious.rename(folder.with_name(name))
    with pytest.raises(ValueError, match=rf"{name} is the place of a cache but holds thesis\.tex: move it elsewhere"):
        opened(folder, Source())
    assert untouched(folder.with_name(name))
