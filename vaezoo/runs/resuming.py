"""From which checkpoint a run continues, and whether it may."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from lightning.pytorch.utilities import rank_zero_only, rank_zero_warn

from vaezoo.models.base import VAE
from vaezoo.models.lightning_private import epochs_done, missing_state
from vaezoo.runs.checkpoint_io import (
    DamagedCheckpointError,
    OpenCheckpoint,
    fetch_checkpoint,
    is_remote,
    read_checkpoint,
)
from vaezoo.runs.folder import RunFolder
from vaezoo.specs import public, with_public_names

SETTINGS, STOPPED_EARLY = "settings", "stopped_early"
"""Where a checkpoint notes what else decides how its run goes on, and that a callback ended it."""


class NothingToDo(Exception):  # noqa: N818  # not an error
    """A run that is asked to continue is complete."""


def resolve_last(experiment: Path, seed: Any) -> tuple[OpenCheckpoint | None, Any]:
    """The experiment's checkpoint that is furthest in training, if there is one, read once, and the seed of its run.

    The choice is the same for all ranks that this process starts, whatever the first of them has saved by then.

    Args:
        experiment: Folder of the experiment's runs.
        seed: Only runs of this seed count: those of several share a folder. True stands for any.
    """
    if "LOCAL_RANK" in os.environ and "VAEZOO_LAST" in os.environ:
        path = os.environ["VAEZOO_LAST"]
        opened = open_checkpoint(path) if path else None
    else:
        opened = furthest_checkpoint(experiment, seed)
        os.environ["VAEZOO_LAST"] = str(opened.path) if opened else ""
    if opened is None:
        _say(f"no checkpoint in {experiment} to continue from: starting afresh")
        return None, seed
    return opened, _seed(RunFolder.of(opened.path)) if seed is True else seed


def furthest_checkpoint(experiment: Path, seed: Any) -> OpenCheckpoint | None:
    """The checkpoint with the most steps behind it that can be continued from, read; others are warned about.

    Clocks, names and folders have no say, as they change: a run may be copied, or hold the best checkpoint of the one
    that it continues. Of several at the same step, that of `RunFolder.all_checkpoints`' first is taken.

    Args:
        experiment: Folder of the experiment's runs.
        seed: Only runs of this seed count. True stands for any.
    """
    skipped: list[Exception] = []
    steps: dict[Path, int] = {}
    for run in reversed(RunFolder.all_in(experiment)):
        try:
            counts = seed is True or _seed(run) == seed
        except (OSError, ValueError) as error:
            skipped.append(error)
            continue
        for path in run.all_checkpoints() if counts else ():
            try:
                steps[path] = _peek(path)
            except (OSError, ValueError, DamagedCheckpointError) as error:
                skipped.append(error)
    found = None
    # Sorting keeps the order of equals, but those of `last` come first whatever their run.
    for path in sorted(steps, key=lambda path: (-steps[path], _rank(path))):
        try:
            found = OpenCheckpoint(path, read_checkpoint(path))  # every byte of it is verified
            break
        except (OSError, ValueError, DamagedCheckpointError) as error:
            skipped.append(error)
    for error in skipped:
        rank_zero_warn(f"{error}: {f'continuing from {found.path}' if found else 'it is left out'}")
    return found


def _peek(path: Path) -> int:
    """Steps behind a checkpoint; reads the names in it and no tensor."""
    content = read_checkpoint(path, mmap=True, verify=False)
    require_resumable(path, content)
    return int(content["global_step"])


def _rank(path: Path) -> int:
    """Which of several checkpoints at one step is taken: the last one holds what the others noted there."""
    names = [RunFolder.of(path).last.name, RunFolder.of(path).previous.name]
    return names.index(path.name) if path.name in names else len(names)


def local_path(path: str) -> str:
    """A path without the `file://` that may be before it."""
    return url2pathname(urlsplit(path).path) if path.startswith("file://") else path


def open_checkpoint(path: str | None) -> OpenCheckpoint | None:
    """Read the checkpoint that a command starts from, wherever it lies; None where there is none."""
    if path is None:
        return None
    return OpenCheckpoint(Path(path), fetch_checkpoint(path) if is_remote(path) else read_checkpoint(Path(path)))


def require_resumable(path: Path, checkpoint: dict[str, Any]) -> None:
    """Refuse a checkpoint without the state of a training: Lightning would begin anew what is missing, or fail."""
    missing = missing_state(checkpoint)
    if missing:
        raise ValueError(
            f"{path} holds no {missing}, so no training can continue from it: give a last.ckpt of a run, which does"
        )


def require_unfinished(
    checkpoint: OpenCheckpoint, max_steps: int, max_epochs: int | None, allow_changes: bool = False
) -> None:
    """Say from where a fit continues.

    Args:
        checkpoint: The checkpoint.
        max_steps: Limit of the fit; -1 is none.
        max_epochs: Another; -1 and None are none.
        allow_changes: Go on with a run that was stopped early.

    Raises:
        NothingToDo: The run is complete under these limits.
    """
    path = checkpoint.path
    require_resumable(path, checkpoint.content)
    step = checkpoint.content["global_step"]
    if _complete(checkpoint.content, max_steps, max_epochs):
        raise NothingToDo(
            f"the run of {path} is complete after step {step}: nothing to do; a higher limit lets it go on"
        )
    if checkpoint.content.get(STOPPED_EARLY) and not allow_changes:
        raise NothingToDo(
            f"the run of {path} is complete: it stopped early, after step {step}, as by EarlyStopping or max_time; "
            "nothing to do; --allow_changes true lets it go on"
        )
    _say(f"continuing from {path}, step {step}")


def require_same_model(model: VAE, checkpoint: dict[str, Any]) -> None:
    """Refuse to use a checkpoint with another model than the one that wrote it."""
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
                "and is tested as it began; start a new one for another model"
            )


def require_same_settings(settings: dict[str, Any], checkpoint: dict[str, Any]) -> None:
    """Refuse to go on with other data, batches or precision than those that a checkpoint notes.

    Args:
        settings: What this run does, by the names of the options.
        checkpoint: The checkpoint; one of an earlier version notes nothing.
    """
    noted = checkpoint.get(SETTINGS)
    before = noted if isinstance(noted, dict) else {}
    if changes := [
        f"{name}={before[name]} (now {value})"
        for name, value in settings.items()
        if name in before and before[name] != value
    ]:
        raise ValueError(
            f"the checkpoint was written with {', '.join(changes)}: a run goes on as it began; give the same settings, "
            "start a new run, or allow the change with --allow_changes true"
        )


@rank_zero_only
def _say(line: str) -> None:
    print(line)


def _complete(checkpoint: dict[str, Any], max_steps: int, max_epochs: int | None) -> bool:
    """Whether nothing is left to do; -1 and None are no limits."""
    if 0 <= max_steps <= checkpoint["global_step"]:
        return True
    return max_epochs is not None and 0 <= max_epochs <= epochs_done(checkpoint)


def _seed(run: RunFolder) -> Any:
    if not run.config.is_file():
        return None
    config = run.read_config()
    if not isinstance(config, dict):
        raise ValueError(f"{run.config} holds no settings, so the seed of its run is unknown")
    return config.get("seed_everything")


def _short(class_path: Any) -> str:
    return str(class_path).rpartition(".")[2]
