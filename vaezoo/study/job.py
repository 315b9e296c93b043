"""A run as a worker of Ray gets it, and what it gives back."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from vaezoo.study.folder import JobFolder


@dataclass(frozen=True)
class Job:
    """A run as plain data, which any worker understands.

    Attributes:
        folder: Folder of the run.
        identity: What its result must carry.
        fit: Arguments of vaezoo that train it.
        scores: Arguments of vaezoo that score a checkpoint, which comes last.
        cwd: Folder that its paths start at.
        cpus: CPUs, and threads, of its processes.
        gpus: GPUs of its processes.
        hang_seconds: Time without progress after which a process is ended; 0 waits for ever.
        may_stop: Whether a training that was stopped early counts as finished.
        facts: What the result says of the run besides.
    """

    folder: Path
    identity: str
    fit: list[str]
    scores: list[str]
    cwd: Path
    cpus: float = 1
    gpus: float = 0
    hang_seconds: float = 0
    may_stop: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    def result(self) -> dict[str, Any]:
        """Its result; empty while there is none."""
        result = JobFolder(self.folder).read("result.json")
        current = result.get("identity") == self.identity and (self.may_stop or not result["stopped"])
        return result if current else {}


class Outcome(NamedTuple):
    """How an attempt ended; "wrong" is a failure that every attempt would repeat."""

    state: Literal["done", "failed", "wrong", "interrupted"]
    message: str = ""
