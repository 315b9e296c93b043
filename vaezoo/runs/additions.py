"""What a command finds out about a checkpoint, for whoever tracks the run that trained it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from vaezoo.metrics.scoring import Evaluation
from vaezoo.models.base import VAE
from vaezoo.runs.folder import RunFolder


@dataclass(frozen=True)
class Additions:
    """Scores, pictures and files of one checkpoint.

    Attributes:
        checkpoint: Its file; the run's folder is that of the file.
        model: The model in it.
        command: Command that found them.
        scores: Scores with their intervals.
        split: Images that were scored.
        data: Where those come from, as `EvaluationData`.
        seed: Seed that chose them.
        pictures: PNG and GIF files, by name.
        files: Other files.
    """

    checkpoint: Path
    model: VAE
    command: str
    scores: Evaluation | None = None
    split: Any = None
    data: Any = None
    seed: int = 0
    pictures: Mapping[str, Path] = field(default_factory=dict)
    files: Sequence[Path] = ()


Track = Callable[[Additions], None]
"""Adds them to the run on its tracker; never raises."""


def add_tracking_option(parser: ArgumentParser, what: str) -> None:
    """`--wandb`, spelt alike in every command that adds to runs.

    Args:
        parser: The command's parser.
        what: What it adds.
    """
    words = f"Add {what} to its Weights & Biases run, if it has one."
    parser.add_argument("--wandb", type=bool, default=True, help=words)


def is_tracked(checkpoint: Path) -> bool:
    """Whether the run that trained a checkpoint is on a tracker."""
    return RunFolder.of(checkpoint).tracking.is_file()
