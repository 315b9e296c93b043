"""Runs of a study that hang, repeat their error, or meet a full disk; without Ray's processes."""

import io
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from vaezoo.study import worker
from vaezoo.study.folder import JobFolder
from vaezoo.study.job import Job, Outcome
from vaezoo.study.screen import Screen
from vaezoo.study.stopping import Stopper
from vaezoo.study.worker import Clock, execute

HANG = 3600.0


def job(folder: Path, **options: Any) -> Job:
    return Job(folder, "identity", ["fit", "--model=BetaVAE"], ["evaluate"], folder.parent, **options)


def test_a_process_without_progress_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BEAT", 0.1)
    waiting = "import time; time.sleep(600)"  # in the place of vaezoo, and as silent as one that hangs
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: popen([command[0], "-c", waiting], **options))
    outcome = execute(job(tmp_path / "run", hang_seconds=0.6))
    assert outcome == Outcome("failed", "vaezoo fit made no progress for 0.01 minutes")
    assert json.loads((tmp_path / "run" / "attempts.json").read_text())["silent"] >= 0.5


def test_output_logs_and_checkpoints_are_progress(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    for name in ("log.txt", "20250101-000000/metrics.csv", "20250101-000000/checkpoints/last.ckpt"):
        clock = Clock(folder)
        clock.moved -= 100
        clock.tick(now=True)
        assert clock.silent > 99
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("more")
        clock.tick(now=True)
        assert clock.silent < 1


def test_codes_that_would_come_again_are_told_apart() -> None:
    wrong = [code for code in (1, 2, 3, -signal.SIGKILL) if isinstance(worker._error("fit", code), ValueError)]
    assert wrong == [2, 3]


def test_a_folder_that_cannot_be_made_fails_its_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outcome = execute(job(tmp_path / "file" / "run"))
    assert outcome.state == "failed"
    assert "Not a directory" in outcome.message


def test_a_note_that_cannot_be_written_leaves_the_training_alone(tmp_path: Path) -> None:
    clock = Clock(JobFolder(tmp_path))
    (tmp_path / "attempts.json").mkdir()  # nothing can take its place, as on a full disk
    clock.tick(now=True)


class Runner:
    """The driver of a study, whose runs are only counted."""

    def __new__(cls, jobs: dict[str, Job], retries: int = 20) -> Any:
        runner = pytest.importorskip("vaezoo.study.runner")

        class Counting(runner.Runner):  # type: ignore[misc, name-defined]
            def _submit(self, name: str) -> None:
                self._tries[name] += 1

        made = Counting(jobs, retries, Stopper({}, []), Screen(io.StringIO()))
        made._tries = dict.fromkeys(jobs, 1)
        return made


def test_a_full_disk_stops_one_run_and_not_the_study(tmp_path: Path) -> None:
    for name in ("full", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "failed.json").mkdir()  # nothing can be written there
    runner = Runner({name: job(tmp_path / name) for name in ("full", "other")})
    for name in ("full", "other"):
        runner._settle(name, Outcome("wrong", "the disk is full"))
    assert [line.state for line in runner.lines.values()] == ["failed", "failed"]
    assert json.loads((tmp_path / "other" / "failed.json").read_text())["reason"] == "the disk is full"


def test_a_run_that_fails_twice_alike_is_given_up(tmp_path: Path) -> None:
    runner, folder = Runner({"run": job(tmp_path)}), JobFolder(tmp_path)

    def fails(line: str, step: int) -> str:
        log = tmp_path / "20250101-000000" / "metrics.csv"
        log.parent.mkdir(exist_ok=True)
        log.write_text(f"step,train/loss\n{step},1.0\n")
        folder.log.write_text(f"$ vaezoo fit\n{line}\n")
        runner._settle("run", Outcome("failed", "vaezoo fit ended with exit code 1"))
        return str(runner.lines["run"].state)

    assert fails("vaezoo: error: no data", 3) == "waiting"
    assert fails("vaezoo: error: no network", 3) == "waiting", "another error"
    assert fails("vaezoo: error: no network", 9) == "waiting", "further than before"
    assert fails("Killed", 9) == "waiting"
    assert fails("Killed", 9) == "waiting", "a kill says nothing about the next try"
    assert fails("vaezoo: error: no data", 9) == "waiting"
    assert fails("vaezoo: error: no data", 9) == "failed"


def test_silence_is_shown_before_a_run_is_ended(tmp_path: Path) -> None:
    runner, folder = Runner({"run": job(tmp_path, hang_seconds=HANG)}), JobFolder(tmp_path)
    runner._earlier["run"] = 0
    for silent in (1.0, 0.51 * HANG, 0.9 * HANG, 1.0):
        folder.write("attempts.json", {"seconds": [HANG], "silent": silent})
        runner._progress("run")
        runner.screen.show(list(runner.lines.values()))
    said = runner.screen.file.getvalue().splitlines()
    silence = "no progress for 30 minutes, ended after 60"
    assert [line.split("  ")[-1] for line in said] == ["1:00:00", silence, "1:00:00"]
