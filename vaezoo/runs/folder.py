"""Layout of a run's folder, `runs/<experiment>/<time>`: the only place that spells these names."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightning.pytorch.utilities import rank_zero_only

from vaezoo.runs.files import read_yaml, require_own_file


@dataclass(frozen=True)
class RunFolder:
    """Folder of one training. Lightning chose the names of the log, of `checkpoints` and of their suffix.

    Attributes:
        path: The folder.
    """

    path: Path

    @classmethod
    def of(cls, checkpoint: str | Path) -> "RunFolder":
        """The run of a checkpoint: the folder above `checkpoints`, or its own folder if that has a configuration.

        The weights of a shared model lie in its own folder.
        """
        folder = Path(checkpoint).parent
        if folder == Path():  # the parent of "." is "."
            folder = folder.absolute()
        above, beside = cls(folder.parent), cls(folder)
        if Path(checkpoint).name == beside.weights.name:
            return beside
        inside = folder.name == above.checkpoints.name or above.config.is_file()
        return above if inside or not beside.config.is_file() else beside

    @classmethod
    def all_in(cls, experiment: Path) -> "list[RunFolder]":
        """Runs of an experiment, the oldest first."""
        return sorted((cls(path) for path in experiment.glob("*/") if path.is_dir()), key=cls._age)

    def _age(self) -> tuple[str, int]:
        """Sorts 20250101-120000-10 after 20250101-120000-9."""
        stamp, number = self.path.name[:15], self.path.name[16:]
        return stamp, int(number) if number.isdecimal() else 1

    @property
    def title(self) -> str:
        """`experiment/time`, for people."""
        return "/".join(self.path.resolve().parts[-2:])

    @property
    def config(self) -> Path:
        """The configuration that repeats the run."""
        return self.path / "config.yaml"

    @property
    def weights(self) -> Path:
        """The weights of a shared model, where the folder is one of `vaezoo.save_pretrained` and of no run."""
        return self.path / "model.safetensors"

    @property
    def shared_config(self) -> Path:
        """What a shared model is, beside its weights."""
        return self.path / "config.json"

    @property
    def card(self) -> Path:
        """What a shared model is, for people."""
        return self.path / "README.md"

    @property
    def training(self) -> Path:
        """The configuration that repeats the run that a shared model comes from."""
        return self.path / "training.yaml"

    @property
    def log(self) -> Path:
        """The log, one row per step."""
        return self.path / "metrics.csv"

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints and their scores."""
        return self.path / "checkpoints"

    @property
    def last(self) -> Path:
        """The checkpoint to resume from."""
        return self.checkpoints / "last.ckpt"

    @property
    def previous(self) -> Path:
        """The checkpoint before the last."""
        return self.checkpoints / "previous.ckpt"

    @property
    def best(self) -> Path:
        """The checkpoint of the lowest validation loss."""
        return self.checkpoints / "best.ckpt"

    @property
    def pictures(self) -> Path:
        """Folder of what was drawn in training, PNG files."""
        return self.path / "pictures"

    @property
    def traversals(self) -> Path:
        """Folder of what `vaezoo traverse` draws."""
        return self.path / "traversals"

    @property
    def exports(self) -> Path:
        """Folder of what `vaezoo export` writes."""
        return self.path / "export"

    @property
    def tracking(self) -> Path:
        """The Weights & Biases run of this run."""
        return self.path / "wandb.json"

    @property
    def tensorboard(self) -> Path:
        """Folder of TensorBoard's files."""
        return self.path / "tensorboard"

    @property
    def mlflow(self) -> Path:
        """Folder of MLflow's files."""
        return self.path / "mlruns"

    @property
    def labelled_ids(self) -> Path:
        """Ids of the images whose labels were used."""
        return self.path / "labelled_ids.npy"

    @property
    def nonfinite(self) -> Path:
        """What was not finite in training, and in which images."""
        return self.path / "nonfinite.jsonl"

    def codes(self, rank: int | None = None) -> Path:
        """Codes of the test images, with ids and factors; one file per rank if there are several."""
        return self.path / ("codes.npz" if rank is None else f"codes_{rank}.npz")

    def all_checkpoints(self) -> Iterator[Path]:
        """Checkpoints to resume from: the last, the previous, then the others, newest first. Files only."""
        first = [path for path in (self.last, self.previous) if path.is_file()]
        others = (path for path in self.checkpoints.glob("*.ckpt") if path.is_file() and path not in first)
        yield from first
        yield from sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)

    def all_pictures(self) -> list[Path]:
        """Pictures drawn in training, by name."""
        return sorted(self.pictures.glob("*.png"))

    def read_config(self) -> Any:
        """The configuration as plain data.

        Raises:
            ValueError: It is no plain data, or lies in no file of this folder.
        """
        require_own_file(self.config, self.path)
        return read_yaml(self.config)


def new_run_folder(experiment: Path) -> Path:
    """Make a folder named after the time, shared by all ranks that this process starts.

    It is made before anything is written, so two runs that start in the same second get different folders.
    """
    if "LOCAL_RANK" in os.environ and (name := os.environ.get("VAEZOO_RUN")):
        return experiment / name
    name = stamp = time.strftime("%Y%m%d-%H%M%S")
    number = 1
    while not _made(experiment / name):
        number += 1
        name = f"{stamp}-{number}"
    os.environ["VAEZOO_RUN"] = name
    return experiment / name


def _made(folder: Path) -> bool:
    if getattr(rank_zero_only, "rank", 0):  # started by a launcher: the first rank says where files go
        return not folder.exists()
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    return True


def remove_if_empty(folder: Path) -> None:
    """Remove a run's folder if empty, and then its experiment's folder and the folder of all runs."""
    with suppress(OSError):  # there is something in it
        for empty in (folder, folder.parent, folder.parent.parent):
            empty.rmdir()


def scores_of(checkpoint: Path, named: bool = False) -> Path:
    """Where the scores of a checkpoint go, beside it; with its name where several share a folder."""
    return checkpoint.with_name(f"metrics_{checkpoint.stem}.json" if named else "metrics.json")


def all_scores(folder: Path) -> list[Path]:
    """All that `scores_of` names in a folder of checkpoints."""
    return sorted(folder.glob("metrics*.json"))
