"""From which checkpoint a run continues, and whether it may."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lightning.pytorch.utilities import rank_zero_only, rank_zero_warn

from vaezoo.models.base import VAE
from vaezoo.models.lightning_private import epochs_done
from vaezoo.runs.checkpoint_io import PREVIOUS, DamagedCheckpointError, read_checkpoint
from vaezoo.runs.files import read_yaml
from vaezoo.specs import public, with_public_names


class NothingToDo(Exception):  # noqa: N818  # not an error
    """A run that is asked to continue is complete."""


def resolve_last(experiment: Path, seed: Any) -> tuple[str | None, Any]:
    """The experiment's newest checkpoint, if there is one, and the seed of its run.

    The choice is the same for all ranks that this process starts, whatever the first of them has saved by then.

    Args:
        experiment: Folder of the experiment's runs.
        seed: Only runs of this seed count: those of several share a folder. True stands for any.
    """
    if "LOCAL_RANK" not in os.environ or "VAEZOO_LAST" not in os.environ:
        os.environ["VAEZOO_LAST"] = str(newest_checkpoint(experiment, seed) or "")
    path = os.environ["VAEZOO_LAST"]
    if not path:
        _say(f"no checkpoint in {experiment} to continue from: starting afresh")
        return None, seed
    return path, _seed(Path(path).parent.parent) if seed is True else seed


def newest_checkpoint(experiment: Path, seed: Any) -> Path | None:
    """The newest checkpoint that can be loaded.

    Runs are tried from the latest on, each with `last.ckpt`, then `previous.ckpt`, then any other.
    """
    damaged: DamagedCheckpointError | None = None
    for run in sorted(experiment.glob("*/"), key=_age, reverse=True):
        for path in _checkpoints(run) if seed is True or _seed(run) == seed else ():
            try:
                read_checkpoint(path, mmap=True)
            except DamagedCheckpointError as error:
                damaged = damaged or error
                continue
            if damaged:
                rank_zero_warn(f"{damaged}: continuing from {path}")
            return path
    if damaged:
        rank_zero_warn(f"{damaged}, and no other checkpoint can be loaded")
    return None


def open_to_continue(path: str | None, max_steps: int, max_epochs: int | None) -> dict[str, Any] | None:
    """What a fit continues from; None where it starts.

    Raises:
        NothingToDo: The run is complete under these limits.
    """
    if path is None or "://" in path:
        return None
    checkpoint = read_checkpoint(Path(path), mmap=True)
    step = checkpoint["global_step"]
    if _complete(checkpoint, max_steps, max_epochs):
        raise NothingToDo(
            f"the run of {path} is complete after step {step}: nothing to do; a higher limit lets it go on"
        )
    _say(f"continuing from {path}, step {step}")
    return checkpoint


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
    print(line)


def _complete(checkpoint: dict[str, Any], max_steps: int, max_epochs: int | None) -> bool:
    """Whether nothing is left to do; -1 and None are no limits."""
    if 0 <= max_steps <= checkpoint["global_step"]:
        return True
    return max_epochs is not None and 0 <= max_epochs <= epochs_done(checkpoint)


def _seed(run: Path) -> Any:
    config = run / "config.yaml"
    return read_yaml(config).get("seed_everything") if config.is_file() else None


def _age(run: Path) -> tuple[str, int]:
    """Sorts 20250101-120000-10 after 20250101-120000-9."""
    stamp, number = run.name[:15], run.name[16:]
    return stamp, int(number) if number.isdecimal() else 1


def _checkpoints(run: Path) -> Iterator[Path]:
    first = [run / "checkpoints" / name for name in ("last.ckpt", PREVIOUS)]
    others = (path for path in (run / "checkpoints").glob("*.ckpt") if path not in first)
    yield from (path for path in first if path.is_file())
    yield from sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)


def _short(class_path: Any) -> str:
    return str(class_path).rpartition(".")[2]
