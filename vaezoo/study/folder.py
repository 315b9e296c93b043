"""What a run of a study leaves on disk: the only memory of a study, so that any part of it may be killed."""

import csv
import json
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaezoo.runs.files import atomic_write
from vaezoo.runs.folder import RunFolder

TAIL = 1 << 16  # bytes of a log that are read for its last lines


@dataclass(frozen=True)
class JobFolder:
    """Folder of one training, `<study>/runs/<experiment>`, with one folder of `vaezoo fit` for each attempt.

    Attributes:
        path: The folder.
    """

    path: Path

    @property
    def log(self) -> Path:
        """What the run's processes print."""
        return self.path / "log.txt"

    @property
    def stop(self) -> Path:
        """Where the study asks the run to stop: it holds "early" or "interrupt"."""
        return self.path / "stop"

    def read(self, name: str) -> dict[str, Any]:
        """`result.json`, `trained.json`, `failed.json` or `attempts.json`; empty where it is not there."""
        file = self.path / name
        return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Write one of them in one step: there is the whole of it or nothing, whenever the power goes."""
        with atomic_write(self.path / name) as draft:
            draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    def checkpoint(self) -> Path | None:
        """The checkpoint of all attempts that is furthest in training and can be loaded."""
        # It loads torch, which a worker of Ray need not hold for the hours that its run trains.
        from vaezoo.runs.last import furthest_checkpoint

        found = furthest_checkpoint(self.path, seed=True)
        return found.path if found else None

    def logs(self) -> list[Path]:
        """What `vaezoo fit` logged, attempt after attempt."""
        return [run.log for run in RunFolder.all_in(self.path) if run.log.is_file()]

    def signs(self) -> dict[Path, tuple[int, int]]:
        """What changes where the run makes progress: sizes and times of its output, logs and checkpoints."""
        files = [self.log, *self.logs(), *self.path.glob(f"*/{RunFolder(Path()).checkpoints}/*")]
        signs = {}
        for file in files:
            with suppress(FileNotFoundError):  # a draft that has just taken its place
                signs[file] = file.stat().st_size, file.stat().st_mtime_ns
        return signs

    def last_lines(self, count: int = 15) -> str:
        """The end of the log."""
        return "\n".join(_tail(self.log).splitlines()[-count:]) if self.log.is_file() else ""

    def error(self) -> str:
        """The line that says why the run's last process failed; empty where there is none."""
        *_, last = ["", *(_tail(self.log).splitlines() if self.log.is_file() else [])]
        return last if last.startswith("vaezoo: error: ") else ""

    def logged(self, metric: str) -> Iterator[tuple[int, float]]:
        """Steps and values of a metric, attempt after attempt."""
        for file in self.logs():
            with file.open(newline="", encoding="utf-8") as lines:
                yield from _values(csv.DictReader(lines), metric)

    def progress(self) -> tuple[int, float] | None:
        """The last step that was logged, and the training loss there."""
        logs = self.logs()
        if not logs:
            return None
        file = logs[-1]
        with file.open(newline="", encoding="utf-8") as lines:
            header = next(csv.reader(lines), [])
        rows = csv.DictReader(_tail(file).splitlines()[1:], header)  # the first is the header, or cut off
        return max(_values(rows, "train/loss"), default=None)


def _tail(file: Path) -> str:
    with file.open("rb") as lines:
        lines.seek(0, os.SEEK_END)
        lines.seek(max(0, lines.tell() - TAIL))
        return lines.read().decode(errors="replace")


def _values(rows: "csv.DictReader[str]", metric: str) -> Iterator[tuple[int, float]]:
    for row in rows:
        try:
            step, value = int(row["step"]), float(row[metric])
        except (KeyError, TypeError, ValueError):
            continue  # nothing logged here, or a line that is being written
        if math.isfinite(value):
            yield step, value
