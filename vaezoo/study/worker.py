"""One run of a study, inside a task of Ray: processes of the real command line, one after the other."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from vaezoo.callbacks import NonFiniteError
from vaezoo.runs.folder import RunFolder, scores_of
from vaezoo.study.folder import JobFolder
from vaezoo.study.job import Job, Outcome
from vaezoo.study.lock import locked

POLL = 0.2  # seconds
BEAT = 2.0  # seconds between two notes of the time spent
PATIENCE = 60.0  # seconds that a process may take to save and end


def execute(job: Job) -> Outcome:
    """Train the run, from its newest checkpoint on, and score it; what already exists is not done again."""
    folder = JobFolder(job.folder)
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        with locked(folder.path / "lock", PATIENCE) as lock, _clocked(folder) as clock:
            if not job.result():
                clock.stage = "train"
                stopped = _trained(job, folder, clock, lock)
                clock.stage = "score"
                _score(job, folder, clock, lock, stopped)
    except KeyboardInterrupt:
        return Outcome("interrupted")
    except ValueError as error:
        return Outcome("wrong", str(error))
    except Exception as error:  # told, not raised: what Ray raises is the death of a worker
        return Outcome("failed", str(error))
    return Outcome("done")


class Clock:
    """Notes the time that attempts take, so that a killed one counts as well, and for how long they made no progress.

    Args:
        folder: Folder of the run.
    """

    def __init__(self, folder: JobFolder) -> None:
        self.folder, self.stage = folder, "wait"
        self.earlier: list[float] = folder.read("attempts.json").get("seconds", [])
        self.start = self.noted = self.moved = time.monotonic()
        self._signs = folder.signs()

    def tick(self, now: bool = False) -> None:
        """Note the time, where the last note is old."""
        if now or time.monotonic() - self.noted > BEAT:
            self.noted = time.monotonic()
            signs, self._signs = self._signs, self.folder.signs()
            self.moved = self.noted if signs != self._signs else self.moved
            note = {"seconds": self.seconds(), "stage": self.stage, "silent": round(self.silent, 1)}
            with suppress(OSError):  # a full disk ends a training where it keeps it from saving
                self.folder.write("attempts.json", note)

    @property
    def silent(self) -> float:
        """Seconds without progress."""
        return time.monotonic() - self.moved

    def seconds(self) -> list[float]:
        """Wall time of each attempt, this one included."""
        return [*self.earlier, round(time.monotonic() - self.start, 1)]


def _trained(job: Job, folder: JobFolder, clock: Clock, lock: int) -> bool:
    """Train, unless that is done; whether it was stopped early."""
    note = folder.read("trained.json")
    if note and (job.may_stop or not note["stopped"]):
        return bool(note["stopped"])
    code = _run(job, [*job.fit, "--ckpt_path=last"], folder, clock, lock)
    stopped = code == -signal.SIGTERM and folder.stop.exists()
    if code != 0 and not stopped:
        raise _error("fit", code)
    if folder.checkpoint() is None:
        raise RuntimeError("vaezoo fit left no checkpoint")
    folder.write("trained.json", {"stopped": stopped})
    return stopped


def _score(job: Job, folder: JobFolder, clock: Clock, lock: int, stopped: bool) -> None:
    """Score the last checkpoint and, at the very end, write the result."""
    checkpoint = folder.checkpoint()
    if checkpoint is None:
        raise RuntimeError("the checkpoint is gone")
    code = _run(job, [*job.scores, str(checkpoint)], folder, clock, lock)
    if code != 0:
        raise _error("evaluate", code)
    found = json.loads(scores_of(checkpoint).read_text(encoding="utf-8"))
    scores = {  # as they stand there: what is not finite is text, which JSON lacks words for
        metric: {name: score["value"] for name, score in result["scores"].items()}
        for metric, result in found["metrics"].items()
    }
    times = clock.seconds()
    done = {"steps": found["step"], "seconds": round(sum(times), 1), "attempts": len(times), "stopped": stopped}
    inside = checkpoint.relative_to(folder.path.parent.parent)  # the study's folder may move
    place = {"folder": str(RunFolder.of(inside).path), "checkpoint": str(inside)}
    folder.write("result.json", {"identity": job.identity, **job.facts, **done, **place, "scores": scores})


def _run(job: Job, args: list[str], folder: JobFolder, clock: Clock, lock: int) -> int:
    """Run vaezoo to its end, or until the study asks for a stop; its exit code, or that of SIGTERM where it was asked.

    The process inherits the lock: as long as it lives, for whatever reason, nobody else writes in its folder.
    """
    with folder.log.open("ab") as log:
        log.write(f"$ vaezoo {' '.join(args)}\n".encode())
        log.flush()
        child = subprocess.Popen(
            [sys.executable, "-m", "vaezoo.study.child", str(os.getpid()), *args],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=job.cwd,
            env={**os.environ, **_environment(job)},
            pass_fds=(lock,),
            start_new_session=True,  # Ctrl-C is for the study, which then asks
        )
    asked = False
    try:
        clock.moved = time.monotonic()
        clock.tick(now=True)
        while child.poll() is None:
            time.sleep(POLL)
            clock.tick()
            if folder.stop.exists():
                asked = _end(child, args[0], folder.stop.read_text())
            elif 0 < job.hang_seconds < clock.silent:
                _terminate(child)
                raise RuntimeError(f"vaezoo {args[0]} made no progress for {job.hang_seconds / 60:g} minutes")
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return -signal.SIGTERM if asked else child.returncode


def _environment(job: Job) -> dict[str, str]:
    """As many threads as CPUs, and no GPU where none was asked for: Ray sets aside those that were."""
    return {"OMP_NUM_THREADS": str(max(1, int(job.cpus))), **({} if job.gpus else {"CUDA_VISIBLE_DEVICES": ""})}


def _end(child: "subprocess.Popen[bytes]", command: str, why: str) -> bool:
    """Ask a process to save and end; a score is worth finishing unless the study is interrupted."""
    if command == "evaluate" and why == "early":
        return False
    _terminate(child)
    if why == "interrupt":
        raise KeyboardInterrupt
    return True


def _terminate(child: "subprocess.Popen[bytes]") -> None:
    child.terminate()  # Lightning ends after this batch, and the last checkpoint is written
    try:
        child.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)


def _error(command: str, code: int) -> Exception:
    """What an exit code means: a command line that is wrong, or a training that diverges, is so however often tried."""
    reason = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    if code == NonFiniteError.exit_code:
        reason += ": what is not finite would be so again"
    kind = ValueError if code in (2, NonFiniteError.exit_code) else RuntimeError
    return kind(f"vaezoo {command} ended with {reason}")


@contextmanager
def _clocked(folder: JobFolder) -> Iterator[Clock]:
    if folder.stop.exists() and folder.stop.read_text() == "interrupt":
        raise KeyboardInterrupt
    clock = Clock(folder)
    try:
        yield clock
    finally:
        clock.tick(now=True)
