"""Runs of the command line that end and are continued."""

from pathlib import Path
from typing import Any

import torch

from tests.helpers.commands import MODELS, NETWORK, SMALL
from tests.helpers.resuming import same
from vaezoo.cli.main import run
from vaezoo.runs.checkpoint_io import read_checkpoint
from vaezoo.runs.folder import RunFolder

FIT = [
    *("fit", *MODELS["beta"], NETWORK, SMALL, "--experiment=exp"),
    *("--trainer.val_check_interval=2", "--trainer.num_sanity_val_steps=0", "--trainer.limit_val_batches=1"),
    *("--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false", "--trainer.accelerator=cpu"),
    *("--trainer.callbacks=LastCheckpoint", "--trainer.callbacks.every_n_train_steps=2"),
]


def fit(steps: int, *more: str, last: str = "last") -> int:
    return run([*FIT, f"--trainer.max_steps={steps}", f"--ckpt_path={last}", *more])


def the_run() -> RunFolder:
    (folder,) = RunFolder.all_in(Path("runs/exp"))
    return folder


def change(path: Path, **parts: Any) -> None:
    """Write a checkpoint again without the parts that are None, and with others in place of its own."""
    content = read_checkpoint(path) | parts
    path.unlink()  # not through a hard link
    torch.save({key: value for key, value in content.items() if value is not None}, path)


def same_state(*paths: Path, note: str = "") -> None:
    keys = ("global_step", "state_dict", "optimizer_states", "lr_schedulers")
    same(*({key: checkpoint[key] for key in keys} for checkpoint in map(read_checkpoint, paths)), note)
