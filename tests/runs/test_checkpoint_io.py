"""Checkpoints on disk, damaged in every way."""

import contextlib
import itertools
import multiprocessing
import os
import random
import resource
import signal
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings, strategies as st

import vaezoo
from vaezoo.runs.checkpoint_io import (
    AtomicCheckpointIO,
    DamagedCheckpointError,
    read_checkpoint,
    remove_stale_drafts,
    write_checkpoint,
)
from vaezoo.runs.files import DRAFT

CHECKPOINT = {
    "state_dict": {"weights": torch.arange(50.0)},
    "epoch": 3,
    "text": {"a": [1, 2.5, None]},
    "half": torch.ones(3).bfloat16(),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("storage") / "whole.ckpt"
    write_checkpoint(CHECKPOINT, path)
    return path


def same(found: object) -> bool:
    return str(found) == str(CHECKPOINT)


def test_what_is_written_is_read_and_nothing_else_is_left(whole: Path) -> None:
    assert same(read_checkpoint(whole))
    assert [file.name for file in whole.parent.iterdir()] == ["whole.ckpt"]


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 3))
def test_flipped_bits_are_detected_or_change_nothing(whole: Path, chance: random.Random, bits: int) -> None:
    """Only padding and time stamps of the zip format carry no checksum."""
    data, path = bytearray(whole.read_bytes()), whole.with_name("flipped.bin")
    for _ in range(bits):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    with contextlib.suppress(DamagedCheckpointError):
        assert same(read_checkpoint(path))
    path.unlink()


def test_every_flipped_bit_of_a_weight_is_detected(whole: Path, tmp_path: Path) -> None:
    data = bytearray(whole.read_bytes())
    weights = CHECKPOINT["state_dict"]["weights"].numpy().tobytes()  # type: ignore[index]
    start = data.index(weights)
    for place in range(start, start + len(weights)):
        data[place] ^= 1 << place % 8
        (tmp_path / "flipped.ckpt").write_bytes(data)
        with pytest.raises(DamagedCheckpointError, match=r"checksum of .*data/0 is wrong"):
            read_checkpoint(tmp_path / "flipped.ckpt")
        data[place] ^= 1 << place % 8


def test_a_cut_off_file_is_detected_wherever_it_ends(whole: Path, tmp_path: Path) -> None:
    data = whole.read_bytes()
    for length in range(0, len(data), 7):
        (tmp_path / "cut.ckpt").write_bytes(data[:length])
        with pytest.raises(DamagedCheckpointError):
            read_checkpoint(tmp_path / "cut.ckpt")


def test_a_damaged_file_is_an_error_that_names_the_one_before(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "last.ckpt").write_bytes(whole.read_bytes()[:-30])
    with pytest.raises(DamagedCheckpointError) as alone:
        AtomicCheckpointIO().load_checkpoint(tmp_path / "last.ckpt")
    assert "before" not in str(alone.value)
    write_checkpoint(CHECKPOINT, tmp_path / "previous.ckpt")
    with pytest.raises(DamagedCheckpointError, match=r"last.ckpt is damaged .*before it is .*previous.ckpt"):
        vaezoo.load(tmp_path / "last.ckpt")


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "executed"),)

    torch.save({"state_dict": {}, "evil": Evil()}, tmp_path / "evil.ckpt")
    with pytest.raises(Exception, match="nothing in it was executed"):
        AtomicCheckpointIO().load_checkpoint(tmp_path / "evil.ckpt", weights_only=False)
    assert not (tmp_path / "executed").exists()


def test_a_full_disk_leaves_the_checkpoint_as_it_was(whole: Path, tmp_path: Path) -> None:
    write_checkpoint(CHECKPOINT, tmp_path / "last.ckpt")
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"the disk seems to be full: .*last.ckpt"):
            write_checkpoint({"weights": torch.ones(100_000)}, tmp_path / "last.ckpt")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert same(read_checkpoint(tmp_path / "last.ckpt"))
    assert [file.name for file in tmp_path.iterdir()] == ["last.ckpt"]


def keep_writing(path: Path) -> None:
    for step in itertools.count():
        write_checkpoint({"state_dict": {}, "step": step, "w": torch.full((2_000_000,), float(step))}, path)


def size_of_draft(folder: Path) -> int:
    try:
        return max((draft.stat().st_size for draft in folder.glob(f"*{DRAFT}")), default=0)
    except FileNotFoundError:
        return 0


def test_a_process_killed_while_it_writes_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    last = tmp_path / "last.ckpt"
    for size in (1, 4_000_000, 7_900_000):
        process = multiprocessing.get_context("fork").Process(target=keep_writing, args=(last,))
        process.start()
        while not (last.exists() and size_of_draft(tmp_path) >= size):
            assert process.is_alive()
        process.kill()
        process.join()
        for draft in tmp_path.glob(f"*{DRAFT}"):
            draft.unlink()
        found = read_checkpoint(last)
        assert (found["w"] == found["step"]).all()


def test_leftovers_are_swept_and_writes_under_way_are_not(tmp_path: Path) -> None:
    for name, age in (("last.ckpt.part", 3600), ("best.ckpt.part", 0), ("last.ckpt", 3600)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    remove_stale_drafts(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"best.ckpt.part", "last.ckpt"}
