"""Runs on Weights & Biases: what they are found by, how they go on, and what happens without login or network."""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from jsonargparse import Namespace
from lightning.pytorch import LightningDataModule, Trainer
from lightning.pytorch.loggers import WandbLogger
from lightning.pytorch.utilities import rank_zero_only, rank_zero_warn

from vaezoo.metrics.catalogue import METRICS, higher_is_better, score_names
from vaezoo.models.base import VAE
from vaezoo.models.lightning_private import log_offline
from vaezoo.runs.commits import commit, own_commit
from vaezoo.runs.folder import RunFolder
from vaezoo.text import reason
from vaezoo.tracking.artifacts import Policy, store_checkpoints
from vaezoo.tracking.notes import nameless_arguments, read_note, without_home, write_note
from vaezoo.tracking.wandb_private import NAMELESS

STEP = "trainer/global_step"
LOSSES = ("val/loss", "val/recon")
# Whole names: where several of W&B's globs match a name (Lightning defines "*"), which one counts is left to chance.
SCORES = tuple(f"val/{score}" for name in METRICS if higher_is_better(name) for score in score_names(name))
"""Scores that are better the higher they are, as `EvaluateDisentanglement` logs them."""

# Seconds that a bad network may hold up a run, and what W&B would tell of the machine.
_SETTINGS = {"init_timeout": 20.0, "finish_timeout": 600.0, **NAMELESS}


class Facts(NamedTuple):
    """What a run is found by."""

    experiment: str
    seed: int | None
    family: str
    paper: str
    dataset: str
    data_source: str

    @classmethod
    def of(cls, experiment: str, seed: Any, model: VAE, data: LightningDataModule) -> "Facts":
        """The facts of a model on its data."""
        return cls(
            experiment,
            None if isinstance(seed, bool) else seed,
            type(model).__name__,
            model.paper,
            type(data).__name__,
            str(getattr(data, "source", "unknown")),
        )

    def tags(self) -> tuple[str, ...]:
        """Tags of the run."""
        seed = () if self.seed is None else (f"seed: {self.seed}",)
        dataset = self.dataset.removesuffix("DataModule")
        return (self.family, self.paper, dataset, f"source: {self.data_source}", *seed)


def fill_in_logger(logger: Namespace, folder: Path, experiment: str, command: str, checkpoint: str | None) -> Policy:
    """Fill in what the user left open in the configuration of a `WandbLogger`.

    A fit or a test that starts from a checkpoint goes on with the run that wrote it. Runs of one experiment, its seeds
    among them, form a group.

    Args:
        logger: The logger's configuration, which is changed.
        folder: The run's folder, for the files.
        experiment: Name of the group.
        command: `fit`, `validate`, `test` or `predict`.
        checkpoint: Checkpoint to start from.

    Returns:
        Which checkpoints to store when training ends; Lightning's logger, which knows less about them, stores none.
    """
    args = logger.init_args
    _refuse_keys(args.get("settings"))
    earlier = read_note(RunFolder.of(checkpoint)) if checkpoint and command in ("fit", "test") else {}
    if args.get("save_dir") == ".":
        args.save_dir = os.path.relpath(folder)
    if args.get("project") == "lightning_logs":  # the default of older versions
        args.project = None
    if args.get("version") is None and args.get("id") is None:
        args.id = earlier.get("id")
    left_open = {
        "project": earlier.get("project") or os.environ.get("WANDB_PROJECT", "vaezoo"),
        "entity": earlier.get("entity"),
        "name": earlier.get("name") or f"{experiment}-{folder.name}",
        "group": earlier.get("group") or experiment,
        "job_type": "fit" if earlier else command,
        "settings": dict(_SETTINGS),
    }
    for key, value in left_open.items():
        if args.get(key) is None:
            args[key] = value
    if not args.get("offline") and args.get("mode") is None and not can_log_in():
        args.mode = "offline"
    policy: Policy = args.get("log_model") or False
    args.log_model = False
    return policy


def _refuse_keys(settings: Any) -> None:
    """A configuration is saved with the run: it must hold no key."""
    named = settings.as_dict() if isinstance(settings, Namespace) else settings if isinstance(settings, dict) else {}
    if secrets := [
        name for name, value in named.items() if value is not None and re.search("key|token|password", name)
    ]:
        raise ValueError(
            f"the logger's {secrets[0]} would be saved with the run: set WANDB_API_KEY or run `wandb login` instead"
        )


def start_run(logger: WandbLogger, folder: Path, facts: Facts, config: dict[str, Any]) -> None:
    """Start the run, offline where the network or W&B fails, and record where it comes from.

    Args:
        logger: Logger that has no run yet.
        folder: The run's folder, which is there and keeps the id for a run that goes on with this one.
        facts: Tags and configuration.
        config: The complete configuration.
    """
    run = _started(logger)
    if run.disabled:
        return
    run.tags = tuple(dict.fromkeys((*(run.tags or ()), *facts.tags())))
    commits = {"git_commit": commit(Path.cwd()), "vaezoo_commit": own_commit()}
    origin = without_home({"run_dir": str(folder), "cli": config})
    run.config.update({**facts._asdict(), **commits, **origin}, allow_val_change=True)
    for names, best in ((LOSSES, "min"), (SCORES, "max")):
        for name in names:
            run.define_metric(name, step_metric=STEP, summary=f"{best},last")
    note = {key: getattr(run, key) or None for key in ("id", "entity", "project", "group", "name")}
    write_note(RunFolder(folder), note)


def store_at_the_end(trainer: Trainer, model: VAE, folder: RunFolder, policy: Policy) -> None:
    """Store the checkpoints of a training that has ended, on the run of each `WandbLogger`; a failure is a warning.

    Args:
        trainer: The Trainer, with its last scores.
        model: Its model.
        folder: The run's folder.
        policy: Which checkpoints.
    """
    data = getattr(trainer, "datamodule", None)
    facts = {
        "class": type(model).__name__,
        "data": type(data).__name__,
        "source": getattr(data, "source", None),
        "step": int(model.step),
        "scores": {name: float(score) for name, score in sorted(trainer.callback_metrics.items())},
    }
    for logger in trainer.loggers if policy else ():
        if isinstance(logger, WandbLogger):
            try:
                store_checkpoints(logger.experiment, folder, policy, facts)
            except Exception as error:  # the training is done, and its checkpoints lie here
                rank_zero_warn(f"no checkpoint was stored on W&B: {reason(error)}")


@rank_zero_only
def can_log_in() -> bool:
    """Whether W&B knows a key; it is never asked for, since that would block."""
    import wandb

    if wandb.setup().settings.mode in ("offline", "dryrun", "disabled"):
        return True  # as the user wants it
    try:
        if wandb.login(prompt=False, verify=False):
            return True
        why = "no login (`wandb login` makes one)"
    except Exception as error:
        why = reason(error)
    _warn_offline(why)
    return False


def _started(logger: WandbLogger) -> Any:
    with nameless_arguments():
        try:
            return logger.experiment
        except Exception as error:  # a wrong key, no network, a server in trouble: none of them is worth a training
            _warn_offline(reason(error))
            log_offline(logger)
            return logger.experiment


def _warn_offline(why: str) -> None:
    import wandb

    wandb.termwarn(f"the run is logged offline; `wandb sync` uploads it later. Reason: {why}")
