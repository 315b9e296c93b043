"""From which checkpoint a run continues, and whether it may."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from lightning.pytorch.utilities import rank_zero_warn

from vaezoo.base import VAE
from vaezoo.storage import PREVIOUS, DamagedCheckpointError, read


def newest(experiment: Path, seed: Any) -> Path | None:
    """The newest checkpoint of an experiment that can be loaded; None where there is none.

    Runs are tried from the latest on, each with `last.ckpt`, then `previous.ckpt`, then any other.

    Args:
        experiment: Folder of the experiment's runs.
        seed: Only runs of this seed count: those of several share a folder. True stands for any.
    """
    damaged: DamagedCheckpointError | None = None
    for run in sorted(experiment.glob("*/"), key=_age, reverse=True):
        for path in _checkpoints(run) if seed is True or seed_of(run) == seed else ():
            try:
                read(path, mmap=True)
            except DamagedCheckpointError as error:
                damaged = damaged or error
                continue
            if damaged:
                rank_zero_warn(f"{damaged}: continuing from {path}")
            return path
    if damaged:
        rank_zero_warn(f"{damaged}, and no other checkpoint can be loaded")
    return None


def seed_of(run: Path) -> Any:
    """The seed in a run's configuration; None where that is missing."""
    config = run / "config.yaml"
    return yaml.safe_load(config.read_text()).get("seed_everything") if config.is_file() else None


def finished(checkpoint: dict[str, Any], max_steps: int, max_epochs: int | None) -> bool:
    """Whether a run with these limits has nothing left to do; -1 and None are no limits."""
    loop = checkpoint["loops"]["fit_loop"]
    epochs = loop["epoch_progress"]["current"]
    within = epochs["ready"] > epochs["processed"]
    done = epochs["processed"] + (within and loop["epoch_loop.batch_progress"]["is_last_batch"])
    steps = int(checkpoint["global_step"])
    return 0 <= max_steps <= steps or (max_epochs is not None and 0 <= max_epochs <= done)


def require_same_model(model: VAE, checkpoint: dict[str, Any]) -> None:
    """Refuse to go on with another model than the one that wrote a checkpoint."""
    ours, theirs = model.spec["class_path"], checkpoint.get("model_class")
    if theirs != ours:
        raise ValueError(f"the checkpoint holds a {_short(theirs)}, the configuration names a {_short(ours)}")
    saved = checkpoint.get(model.CHECKPOINT_HYPER_PARAMS_KEY, {})
    for name, value in model.spec["init_args"].items():
        before = saved.get(name, value)
        if name == "regularizers":  # those that the checkpoint has on top were added to the model afterwards
            before = {key: (before or {}).get(key) for key in value} if value else value
        if before != value:
            raise ValueError(
                f"the checkpoint was written with model.{name}={before}, the configuration says {value}: a run goes on "
                "as it began, start a new one for another model"
            )


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
