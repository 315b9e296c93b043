"""From which checkpoint a run continues, and whether it may."""

import os
from pathlib import Path
from typing import Any

from lightning.pytorch.utilities import rank_zero_only, rank_zero_warn

from vaezoo.models.base import VAE
from vaezoo.models.lightning_private import epochs_done
from vaezoo.runs.checkpoint_io import DamagedCheckpointError, OpenCheckpoint, read_checkpoint
from vaezoo.runs.folder import RunFolder
from vaezoo.specs import public, with_public_names
from vaezoo.text import printable


class NothingToDo(Exception):  # noqa: N818  # not an error
    """A run that is asked to continue is complete."""


def resolve_last(experiment: Path, seed: Any) -> tuple[OpenCheckpoint | None, Any]:
    """The experiment's newest checkpoint, if there is one, read once, and the seed of its run.

    The choice is the same for all ranks that this process starts, whatever the first of them has saved by then.

    Args:
        experiment: Folder of the experiment's runs.
        seed: Only runs of this seed count: those of several share a folder. True stands for any.
    """
    if "LOCAL_RANK" in os.environ and "VAEZOO_LAST" in os.environ:
        path = os.environ["VAEZOO_LAST"]
        opened = open_checkpoint(path) if path else None
    else:
        opened = newest_checkpoint(experiment, seed)
        os.environ["VAEZOO_LAST"] = str(opened.path) if opened else ""
    if opened is None:
        _say(f"no checkpoint in {experiment} to continue from: starting afresh")
        return None, seed
    return opened, _seed(RunFolder.of(opened.path)) if seed is True else seed


def newest_checkpoint(experiment: Path, seed: Any) -> OpenCheckpoint | None:
    """The newest checkpoint that can be loaded, read; runs are tried from the latest on.

    Args:
        experiment: Folder of the experiment's runs.
        seed: Only runs of this seed count. True stands for any.
    """
    damaged: DamagedCheckpointError | None = None
    for run in reversed(RunFolder.all_in(experiment)):
        for path in run.all_checkpoints() if seed is True or _seed(run) == seed else ():
            try:
                opened = OpenCheckpoint(path, read_checkpoint(path))
            except DamagedCheckpointError as error:
                damaged = damaged or error
                continue
            if damaged:
                rank_zero_warn(f"{damaged}: continuing from {path}")
            return opened
    if damaged:
        rank_zero_warn(f"{damaged}, and no other checkpoint can be loaded")
    return None


def open_checkpoint(path: str | None) -> OpenCheckpoint | None:
    """Read the checkpoint that a command starts from; None where there is none, or Lightning fetches it from afar."""
    return None if path is None or "://" in path else OpenCheckpoint(Path(path), read_checkpoint(Path(path)))


def require_unfinished(checkpoint: OpenCheckpoint, max_steps: int, max_epochs: int | None) -> None:
    """Say from where a fit continues.

    Raises:
        NothingToDo: The run is complete under these limits.
    """
    path, step = checkpoint.path, checkpoint.content["global_step"]
    if _complete(checkpoint.content, max_steps, max_epochs):
        raise NothingToDo(
            f"the run of {path} is complete after step {step}: nothing to do; a higher limit lets it go on"
        )
    _say(f"continuing from {path}, step {step}")


def require_same_model(model: VAE, checkpoint: dict[str, Any]) -> None:
    """Refuse to go on with another model than the one that wrote a checkpoint."""
    ours, theirs = model.spec["class_path"], public(str(checkpoint.get("model_class")))
    if theirs != ours:
        raise ValueError(f"the checkpoint holds a {_short(theirs)}, the configuration names a {_short(ours)}")
    saved = with_public_names(checkpoint.get(model.CHECKPOINT_HYPER_PARAMS_KEY, {}))
    model.update_arguments(saved, checkpoint)
    for name, value in model.spec["init_args"].items():
        before = saved.get(name, value)
        if name == "regularizers":  # those that the checkpoint has on top were added to the model afterwards
            before = {key: (before or {}).get(key) for key in value} if value else value
        if before != value:
            raise ValueError(
                f"the checkpoint was written with model.{name}={before}, the configuration says {value}: a run goes on "
                "as it began, start a new one for another model"
            )


@rank_zero_only
def _say(line: str) -> None:
    print(printable(line))


def _complete(checkpoint: dict[str, Any], max_steps: int, max_epochs: int | None) -> bool:
    """Whether nothing is left to do; -1 and None are no limits."""
    if 0 <= max_steps <= checkpoint["global_step"]:
        return True
    return max_epochs is not None and 0 <= max_epochs <= epochs_done(checkpoint)


def _seed(run: RunFolder) -> Any:
    return run.read_config().get("seed_everything") if run.config.is_file() else None


def _short(class_path: Any) -> str:
    return str(class_path).rpartition(".")[2]
