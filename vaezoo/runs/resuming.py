"""Whether a run may continue from a checkpoint."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from lightning.pytorch.utilities import rank_zero_only

from vaezoo.models.base import VAE
from vaezoo.models.lightning_private import epochs_done, missing_state
from vaezoo.runs.checkpoint_io import OpenCheckpoint, fetch_checkpoint, is_remote, read_checkpoint
from vaezoo.specs import class_path, public, with_public_names

SETTINGS, STOPPED_EARLY, ACCUMULATING = "settings", "stopped_early", "accumulating"
"""Where a checkpoint notes its settings, that a callback ended the run, and that it lacks accumulated gradients."""


class NothingToDo(Exception):  # noqa: N818  # not an error
    """A run that is asked to continue is complete."""


@rank_zero_only
def say(line: str) -> None:
    """Print a line, once."""
    print(line)


def local_path(path: str) -> str:
    """A path without the `file://` that may be before it."""
    return url2pathname(urlsplit(path).path) if path.startswith("file://") else path


def open_checkpoint(path: str | None) -> OpenCheckpoint | None:
    """Read the checkpoint that a command starts from, local or remote; None if there is none."""
    if path is None:
        return None
    return OpenCheckpoint(Path(path), fetch_checkpoint(path) if is_remote(path) else read_checkpoint(Path(path)))


def require_resumable(path: Path, checkpoint: dict[str, Any]) -> None:
    """Refuse a checkpoint without training state: Lightning would restart what is missing, or fail."""
    missing = missing_state(checkpoint)
    if missing:
        raise ValueError(f"{path} holds no {missing}, so training cannot resume from it: use a run's last.ckpt")


def require_unfinished(
    checkpoint: OpenCheckpoint, max_steps: int, max_epochs: int | None, allow_changes: bool = False
) -> None:
    """Refuse to resume a complete run.

    Args:
        checkpoint: The checkpoint.
        max_steps: Step limit; -1 for no limit.
        max_epochs: Epoch limit; -1 or None for no limit.
        allow_changes: Continue a run that was stopped early.

    Raises:
        NothingToDo: The run is complete under these limits.
    """
    path = checkpoint.path
    require_resumable(path, checkpoint.content)
    step = checkpoint.content["global_step"]
    if _complete(checkpoint.content, max_steps, max_epochs):
        raise NothingToDo(
            f"the run of {path} is complete after step {step}: nothing to do; raise the limit to continue"
        )
    if checkpoint.content.get(STOPPED_EARLY) and not allow_changes:
        raise NothingToDo(
            f"the run of {path} is complete: it stopped early, after step {step}, e.g. by EarlyStopping or max_time; "
            "nothing to do; --allow_changes true continues it"
        )


def require_same_model(model: VAE, checkpoint: dict[str, Any]) -> None:
    """Refuse a checkpoint of another model."""
    ours, theirs = model.spec["class_path"], public(str(checkpoint.get("model_class")))
    if theirs != ours:
        raise ValueError(f"the checkpoint holds a {_short(theirs)}, the configuration names a {_short(ours)}")
    for name, (before, value) in _other_arguments(type(model), model.spec["init_args"], checkpoint).items():
        raise ValueError(
            f"the checkpoint was written with model.{name}={before}, the configuration says {value}: a run "
            "keeps its model; start a new run for another one"
        )


def require_same_settings(settings: dict[str, Any], checkpoint: dict[str, Any]) -> None:
    """Refuse to resume with other data, batch size or precision than the checkpoint's.

    Args:
        settings: Settings of this run, by option name.
        checkpoint: The checkpoint; those of earlier versions hold no settings.
    """
    if changes := _other_settings(settings, checkpoint):
        raise ValueError(
            f"the checkpoint was written with {', '.join(changes)}: a resumed run keeps its settings; give the same "
            "ones, start a new run, or allow the change with --allow_changes true"
        )


def differences(
    model: type[VAE], arguments: dict[str, Any], settings: dict[str, Any], checkpoint: dict[str, Any]
) -> list[str]:
    """Differences between a checkpoint and a configuration whose model is not built yet, a few words each.

    Args:
        model: The model's class.
        arguments: Its arguments as plain data; those that come from the data may be missing.
        settings: As in `require_same_settings`.
        checkpoint: The checkpoint.
    """
    ours, theirs = class_path(model), public(str(checkpoint.get("model_class")))
    if theirs != ours:
        return [f"model={_short(theirs)} (now {_short(ours)})"]
    model.update_arguments(arguments, checkpoint)
    other = _other_arguments(model, arguments, checkpoint).items()
    changed = [f"model.{name}={before} (now {value})" for name, (before, value) in other]
    return changed + _other_settings(settings, checkpoint)


def _other_arguments(
    model: type[VAE], arguments: dict[str, Any], checkpoint: dict[str, Any]
) -> dict[str, tuple[Any, Any]]:
    """Arguments in which a checkpoint differs: its own and ours, by name."""
    saved = with_public_names(checkpoint.get(model.CHECKPOINT_HYPER_PARAMS_KEY, {}))
    saved = saved if isinstance(saved, dict) else {}
    model.update_arguments(saved, checkpoint)
    found = {}
    for name, value in arguments.items():
        before = saved.get(name, value)
        if name == "regularizers":  # those that the checkpoint has on top were added to the model afterwards
            before = {key: (before or {}).get(key) for key in value} if value else value
        if before != value:
            found[name] = before, value
    return found


def _other_settings(settings: dict[str, Any], checkpoint: dict[str, Any]) -> list[str]:
    noted = checkpoint.get(SETTINGS)
    before = noted if isinstance(noted, dict) else {}
    return [
        f"{name}={before[name]} (now {value})"
        for name, value in settings.items()
        if name in before and before[name] != value
    ]


def _complete(checkpoint: dict[str, Any], max_steps: int, max_epochs: int | None) -> bool:
    """Whether nothing is left to do; -1 and None are no limits."""
    if 0 <= max_steps <= checkpoint["global_step"]:
        return True
    return max_epochs is not None and 0 <= max_epochs <= epochs_done(checkpoint)


def _short(class_path: Any) -> str:
    return str(class_path).rpartition(".")[2]
