"""What a run's folder holds, as plain data; what is missing becomes a note."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vaezoo.report.logs import Curve, read_curves
from vaezoo.report.scores import Score, last_values, read_scores
from vaezoo.runs.files import require_own_file
from vaezoo.runs.folder import RunFolder, all_scores
from vaezoo.text import reason


@dataclass
class Run:
    """One training.

    Attributes:
        name: Its folder, as `experiment/time`.
        path: The folder.
        label: What tells it from the other runs of a report.
        config: The configuration; empty if there is none.
        settings: The same, flat and as text.
        curves: Logged values by name.
        scores: Scores by name: evaluated ones first, then the last logged ones of the validation.
        scored: What the evaluated scores were computed on.
        checkpoint: The last checkpoint, or the best, or any.
        pictures: Pictures drawn in training.
        notes: What is missing, in words.
    """

    name: str
    path: Path
    label: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    curves: dict[str, Curve] = field(default_factory=dict)
    scores: dict[str, Score] = field(default_factory=dict)
    scored: str = ""
    checkpoint: Path | None = None
    pictures: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def trained(self) -> bool:
        """Whether it went through a step: a folder of `vaezoo test`, or of a start that failed, did not."""
        return RunFolder(self.path).last.is_file() or any(name.startswith("train/") for name in self.curves)

    @property
    def empty(self) -> bool:
        """Whether it left neither a logged row nor a checkpoint."""
        return not self.curves and self.checkpoint is None

    def setting(self, key: str, default: str = "") -> str:
        """One value of the configuration; of a class, its name alone."""
        value = self.settings.get(key, default)
        return value.rpartition(".")[2] if key.endswith("class_path") else value


def find_runs(paths: Sequence[Path]) -> list[Path]:
    """Run folders: those named, and all below a folder that is none itself, newest first.

    Raises:
        FileNotFoundError: A path is no run and holds none.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        below = sorted(_below(path), key=lambda run: run.name, reverse=True)  # runs are named after their time
        if not below:
            what = "holds no run" if path.is_dir() else "is no folder"
            marks = ", ".join(mark.name for mark in _marks(path))
            raise FileNotFoundError(
                f"{path} {what}: expected a run's folder such as runs/EXPERIMENT/TIME, with {marks}, "
                "or a folder of such"
            )
        for run in below:
            found.setdefault(run.resolve(), run)
    return list(found.values())


def read_run(path: Path, points: int = 400) -> Run:
    """Read a folder; whatever is missing or broken becomes a note.

    Args:
        path: The run's folder.
        points: Most points of a curve.
    """
    folder = RunFolder(path)
    run = Run(folder.title, path)
    readers = {folder.config: _read_config, folder.log: _read_metrics, folder.checkpoints: _read_checkpoints}
    for what, read in readers.items():
        try:
            if not what.exists():
                raise FileNotFoundError("it is not there")
            if what != folder.checkpoints:
                require_own_file(what, path)
            read(run, folder, points)
        except Exception as error:  # a report of many runs must not end at a broken one
            run.notes.append(f"{what.name} could not be read: {reason(error)}")
    run.scores |= {name: score for name, score in last_values(run.curves).items() if name not in run.scores}
    run.pictures = _own(run, folder.all_pictures())
    return run


def flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Nested settings as text by dotted key; lists of plain values stay one value."""
    if isinstance(value, dict) and value:
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        items = [(str(i), item) for i, item in enumerate(value)]
    else:
        return {prefix: "null" if value is None else str(value)}
    return {k: v for key, item in items for k, v in flat(item, f"{prefix}.{key}" if prefix else key).items()}


def _marks(path: Path) -> tuple[Path, ...]:
    """What tells a run's folder from others."""
    run = RunFolder(path)
    return run.config, run.log, run.checkpoints


def _below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        return
    if any(mark.exists() for mark in _marks(path)):
        yield path
        return
    for folder in path.iterdir():
        if folder.is_dir() and not folder.is_symlink() and not folder.name.startswith("."):
            yield from _below(folder)


def _read_config(run: Run, folder: RunFolder, points: int) -> None:
    config = folder.read_config()
    if not isinstance(config, dict):
        raise ValueError("it holds no settings")
    # How a logger is set up says nothing about the run.
    shown = {key: value for key, value in flat(config).items() if not re.match(r"trainer\.logger\..*init_args", key)}
    run.config, run.settings = config, shown


def _read_metrics(run: Run, folder: RunFolder, points: int) -> None:
    run.curves = read_curves([folder.log], points)


def _read_checkpoints(run: Run, folder: RunFolder, points: int) -> None:
    files = _own(run, [file for file in (folder.last, folder.best, *folder.all_checkpoints()) if file.is_file()])
    run.checkpoint = next(iter(files), None)
    if run.checkpoint is None:
        run.notes.append(f"{folder.checkpoints.name} holds no .ckpt file, so nothing can be drawn")
    run.scores, run.scored = read_scores(_own(run, all_scores(folder.checkpoints)), run.checkpoint)


def _own(run: Run, files: Iterable[Path]) -> list[Path]:
    """Files of the run itself; a note says which are not."""
    own = []
    for file in dict.fromkeys(files):
        try:
            require_own_file(file, run.path)
            own.append(file)
        except ValueError as error:
            run.notes.append(reason(error))
    return own
