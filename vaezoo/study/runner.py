"""Runs of a study on Ray: each is a task, whose stops and results are kept in files and nowhere else.

They are no trials of Ray Tune: it ends the process of a trial that its scheduler stops before the run could save and be
scored, and keeps a state of its own beside the files, which may disagree with them when a study goes on. Its schedulers
only decide.
"""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# Read when ray is imported: it tells nobody, and gives runs the priority of any program, where it would take almost the
# least.
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}

import ray
from ray.exceptions import RayError

from vaezoo.study.file import Study
from vaezoo.study.folder import JobFolder
from vaezoo.study.job import Job, Outcome
from vaezoo.study.lock import locked
from vaezoo.study.screen import Line, Screen
from vaezoo.study.stopping import Stopper
from vaezoo.study.worker import PATIENCE, execute

TICK = 1.0  # seconds
OBJECTS = 100 * 2**20  # bytes of Ray's store of objects, which only ever holds a few words


def run_jobs(jobs: Mapping[str, Job], study: Study, output: Path, address: str | None, retries: int) -> dict[str, str]:
    """Run what is not done of a study; why runs failed, by name.

    Args:
        jobs: All runs by name.
        study: What they belong to.
        output: Folder of the study.
        address: Address of a running Ray; None starts one.
        retries: How often a failed run is tried again.
    """
    with locked(output / "lock"):
        stopper = Stopper(study.scheduler, [job.folder for job in jobs.values()])
        with _cluster(address, list(jobs.values())):
            runner = Runner(jobs, retries, stopper, Screen())
            runner.run()
    return {line.name: line.note for line in runner.lines.values() if line.state == "failed"}


@contextmanager
def _cluster(address: str | None, jobs: Sequence[Job]) -> Iterator[None]:
    """A Ray of our own on this machine, or one that runs somewhere."""
    before = signal.getsignal(signal.SIGTERM)
    # Sockets live below it, and their paths must be short.
    folder = tempfile.mkdtemp(prefix="vz", dir="/tmp")
    local = {"include_dashboard": False, "object_store_memory": OBJECTS, "_temp_dir": folder}
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        _start({"address": address or "local", **quiet, **({} if address else local)})
        if address is None:  # machines of a cluster may come later
            _check(jobs)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends a study as Ctrl-C does; Ray would exit
        yield
    finally:
        ray.shutdown()
        signal.signal(signal.SIGTERM, before)
        shutil.rmtree(folder, ignore_errors=True)


def _start(options: dict[str, Any], tries: int = 5) -> None:
    """Start Ray, which gives itself half a minute: too little where the machine is busy."""
    for left in reversed(range(tries)):
        try:
            ray.init(**options)
            return
        except Exception as error:  # no class of its own
            ray.shutdown()
            if not left or "timed out during startup" not in str(error):
                raise


class Runner:
    """Runs jobs until all are done or have failed.

    Args:
        jobs: By name of the run.
        retries: How often a failed run is tried again.
        stopper: Who stops runs early.
        screen: Where progress is shown.
    """

    def __init__(self, jobs: Mapping[str, Job], retries: int, stopper: Stopper, screen: Screen) -> None:
        self.jobs, self.retries, self.stopper, self.screen = jobs, retries, stopper, screen
        # A worker that dies is tried again from here, where it counts as a failure of its run.
        self._task = ray.remote(max_retries=0)(execute)
        self.lines = {name: Line(name) for name in jobs}
        self._tries = dict.fromkeys(jobs, 0)
        self._earlier: dict[str, int] = {}
        self._ends: dict[str, tuple[str, tuple[int, float] | None]] = {}
        self._pending: dict[Any, str] = {}

    def run(self) -> None:
        """Run them all; what is done already is left alone.

        Raises:
            KeyboardInterrupt: The user wants it to end; running trainings have saved where they are.
        """
        for name, job in self.jobs.items():
            if job.result():
                self._settle(name, Outcome("done"))
                self.stopper.behind(job.folder)  # it may compare others with this one
            else:
                JobFolder(job.folder).stop.unlink(missing_ok=True)
                self._submit(name)
        try:
            while self._pending:
                self._wait(TICK)
        except KeyboardInterrupt:
            self._interrupt()
            raise

    def _submit(self, name: str) -> None:
        self._tries[name] += 1
        self._earlier[name] = len(_attempts(self.jobs[name]))
        job = self.jobs[name]
        self._pending[self._task.options(num_cpus=job.cpus, num_gpus=job.gpus).remote(job)] = name

    def _wait(self, timeout: float) -> None:
        ended, _ = ray.wait(list(self._pending), timeout=timeout)
        for task in ended:
            name = self._pending.pop(task)
            try:
                outcome: Outcome = ray.get(task)
            except RayError as error:  # its worker or its node died
                outcome = Outcome("failed", f"the worker died ({type(error).__name__})")
            self._settle(name, outcome)
        for name in self._pending.values():
            self._progress(name)
        self.screen.show(list(self.lines.values()))

    def _settle(self, name: str, outcome: Outcome) -> None:
        line, folder = self.lines[name], JobFolder(self.jobs[name].folder)
        line.seconds, line.silence = sum(_attempts(self.jobs[name])), ""
        if outcome.state == "done":
            result = self.jobs[name].result()
            line.state, line.step = "done", result["steps"]
            line.note = "stopped early" if result["stopped"] else ""
            with suppress(OSError):
                (folder.path / "failed.json").unlink(missing_ok=True)
        elif outcome.state == "interrupted":
            line.state = "waiting"
        elif outcome.state == "failed" and self._tries[name] <= self.retries and not self._repeats(name):
            line.state, line.note = "waiting", f"retry {self._tries[name]} of {self.retries}: {outcome.message}"
            self._submit(name)
        else:
            line.state, line.note = "failed", outcome.message
            with suppress(OSError):  # the disk that failed the run may be full: the others go on
                folder.write("failed.json", {"reason": outcome.message, "log": folder.last_lines()})

    def _progress(self, name: str) -> None:
        job, line = self.jobs[name], self.lines[name]
        attempts = _attempts(job)
        if len(attempts) <= self._earlier[name]:
            return
        line.state, line.seconds, folder = "running", sum(attempts), JobFolder(job.folder)
        if (found := folder.progress()) is not None:
            line.step, line.loss = found
        silent, hang = folder.read("attempts.json").get("silent", 0.0), job.hang_seconds
        said = f"no progress for {hang / 120:g} minutes, ended after {hang / 60:g}"
        line.silence = said if silent > hang / 2 > 0 else ""
        if self.stopper.behind(job.folder) and not folder.stop.exists():
            with suppress(OSError):
                folder.stop.write_text("early")

    def _repeats(self, name: str) -> bool:
        """Whether a run ended with the same error, and as far, as when it was tried before: it always will."""
        folder = JobFolder(self.jobs[name].folder)
        before, self._ends[name] = self._ends.get(name), (folder.error(), folder.progress())
        return bool(before) and before == self._ends[name] and bool(folder.error())

    def _interrupt(self) -> None:
        """Let running trainings save; a second Ctrl-C does not wait for that."""
        for name in self._pending.values():
            folder = JobFolder(self.jobs[name].folder)
            with suppress(OSError):
                folder.path.mkdir(parents=True, exist_ok=True)
                folder.stop.write_text("interrupt")
        end = time.monotonic() + PATIENCE
        while self._pending and time.monotonic() < end:
            self._wait(TICK)


def _attempts(job: Job) -> list[float]:
    return list(JobFolder(job.folder).read("attempts.json").get("seconds", []))


def _check(jobs: Sequence[Job]) -> None:
    """Ray would wait forever for a run that does not fit."""
    there = {what: ray.cluster_resources().get(what, 0) for what in ("CPU", "GPU")}
    for job in jobs:
        if job.cpus > there["CPU"] or job.gpus > there["GPU"]:
            raise ValueError(
                f"a run asks for {job.cpus:g} CPUs and {job.gpus:g} GPUs, but there are {there['CPU']:g} and "
                f"{there['GPU']:g}: see --cpus_per_run and --gpus_per_run"
            )
