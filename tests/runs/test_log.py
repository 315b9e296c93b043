"""The log of a run, killed and out of disk wherever that could hurt."""

import builtins
import csv
import os
import resource
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from lightning.pytorch.loggers import CSVLogger

from vaezoo.runs.folder import RunFolder
from vaezoo.runs.log import RunLog

FIRST = [{"loss": step / 4} for step in range(200)]
NEW = {"loss": 9.0, "val/loss": 8.0, "name, with a comma": 7.0}


def rows(folder: Path) -> list[dict[str, str]]:
    with RunFolder(folder).log.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "exp" / "20250101-120000"


def logged(folder: Path) -> RunLog:
    log = RunLog(folder)
    for step, row in enumerate(FIRST):
        log.log_metrics(row, step)
    return log


def test_it_is_what_lightnings_own_log_is(folder: Path, tmp_path: Path) -> None:
    ours, theirs = logged(folder), CSVLogger(tmp_path, "their", "1", flush_logs_every_n_steps=1)
    for step, row in enumerate(FIRST):
        theirs.log_metrics(row, step)
    for log in (ours, theirs):
        log.log_metrics(NEW, 200)
        log.log_metrics({"loss": 6.0}, 201)
        log.finalize("success")
    assert RunFolder(folder).log.read_bytes() == (tmp_path / "their" / "1" / "metrics.csv").read_bytes()
    assert [file.name for file in folder.iterdir()] == ["metrics.csv"]


def in_a_child(work: Callable[[], Any]) -> None:
    """Do something in a process of its own, to its end or until it is killed."""
    if not (pid := os.fork()):
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def log_until_killed(log: CSVLogger, count: int, after: bool) -> None:
    """Log a row with new columns; killed before or after the first, second, … call that may change a file."""
    calls = 0

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            result = function(*args, **kwargs) if after or calls != count else None
            if calls == count:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    changing = ((os, "fsync"), (builtins, "open"), (Path, "open"), (Path, "replace"), (Path, "unlink"))
    for owner, name in changing:
        setattr(owner, name, watched(getattr(owner, name)))
    log.log_metrics(NEW, 200)
    Path(log.log_dir, "done").touch()


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_time_leaves_every_row(after: bool, folder: Path) -> None:
    log, count = logged(folder), 0
    while not (folder / "done").exists():
        count += 1
        in_a_child(partial(log_until_killed, log, count, after))
        assert [float(row["loss"]) for row in rows(folder)][:200] == [row["loss"] for row in FIRST], count
    assert count > 5
    assert rows(folder)[-1]["val/loss"] == "8.0"


def limited(work: Callable[[], Any], size: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    with pytest.raises(OSError, match=r"metrics\.csv"):
        work()
    (Path.cwd() / "refused").touch()


@pytest.mark.parametrize("row", [NEW, {"loss": 123456.0}], ids=["new column", "another row"])
def test_a_full_disk_leaves_every_row(
    row: dict[str, float], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = logged(folder)
    size = RunFolder(folder).log.stat().st_size
    in_a_child(lambda: limited(lambda: log.log_metrics(row, 200), size + 3))
    assert Path("refused").exists()
    assert RunFolder(folder).log.stat().st_size == size
    assert [float(row["loss"]) for row in rows(folder)] == [row["loss"] for row in FIRST]
    log.log_metrics(row, 200)  # once there is room
    assert float(rows(folder)[-1]["loss"]) == row["loss"]
