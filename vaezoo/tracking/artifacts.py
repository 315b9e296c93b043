"""Checkpoints as artifacts of Weights & Biases: stored when training ends, fetched where a command names one."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from filelock import FileLock

from vaezoo.runs.files import link
from vaezoo.runs.folder import RunFolder, scores_of
from vaezoo.text import reason
from vaezoo.tracking.notes import write_note

Policy = Literal[False, True, "all"]
"""Which checkpoints a run keeps on W&B when its training ends: none, the best, or the best and the last."""

SCHEME, TYPE = "wandb:", "model"
_NAMES = RunFolder(Path())


class Address(NamedTuple):
    """`wandb:entity/project/name:alias`."""

    entity: str
    project: str
    name: str
    alias: str

    @classmethod
    def read(cls, text: str) -> "Address":
        """The parts of an address.

        Raises:
            ValueError: It is none.
        """
        part = r"([\w.-]*\w[\w.-]*)"
        found = re.fullmatch(f"{SCHEME}{part}/{part}/{part}:{part}", text)
        if found is None:
            raise ValueError(
                f"{text} is no address: write wandb:entity/project/name:alias, say wandb:me/vaezoo/model-a1b2:best"
            )
        return cls(*found.groups())

    def folder(self, version: str) -> Path:
        """Where its files go."""
        return Path(os.environ.get("WANDB_ARTIFACT_DIR", "artifacts"), self.entity, self.project, self.name, version)


def stored_files(name: str, kind: str, files: Iterable[Path], folder: RunFolder, metadata: Any = None) -> Any:
    """An artifact, not yet logged, of files as they are now: one that is replaced later does not change it.

    Args:
        name: Its name.
        kind: Its type.
        files: What it holds.
        folder: The run's folder, which keeps a second name of each file until they are uploaded.
        metadata: Facts about it.
    """
    import wandb

    artifact = wandb.Artifact(name, kind, metadata=dict(metadata or {}))
    number = len(list((folder.path / "wandb").glob("stored-*")))
    for file in files:
        kept = folder.path / "wandb" / f"stored-{number}" / file.name
        link(file, kept)
        # Named from the current folder on, and not copied by W&B to the user's: that path would be uploaded as well.
        artifact.add_file(os.path.relpath(kept), name=file.name, policy="immutable", skip_cache=True)
    return artifact


def store_checkpoints(run: Any, folder: RunFolder, policy: Policy, facts: Mapping[str, Any]) -> None:
    """Store the checkpoints of a run that has ended, under the names "best" and "last".

    Each is a version of the artifact `model-<id>`, with what a command needs beside it: `config.yaml`,
    `labelled_ids.npy` and `metrics.json`, those that are there.

    Args:
        run: The run on W&B.
        folder: Its folder.
        policy: Which of them.
        facts: Class, data, step and scores.
    """
    chosen = {False: [], True: [folder.best], "all": [folder.last, folder.best]}[policy]
    if policy is True and not folder.best.is_file():  # nothing was validated
        chosen = [folder.last]
    for checkpoint in chosen:
        if checkpoint.is_file():
            files = [path for path in (checkpoint, *_beside(folder, checkpoint)) if path.is_file()]
            metadata = {**facts, "checkpoint": checkpoint.stem}
            artifact = stored_files(f"{TYPE}-{run.id}", TYPE, files, folder, metadata)
            run.log_artifact(artifact, aliases=[checkpoint.stem])


def fetch(text: str) -> Path:
    """Download an artifact's checkpoint and what belongs to it, unless it is here already.

    Nothing in it is executed: a checkpoint is read as any other is, tensors and plain data alone.

    Args:
        text: Its address.

    Raises:
        ValueError: It is no address, or the artifact holds no checkpoint.
        RuntimeError: It cannot be had: no login, no network, no such artifact.
    """
    address = Address.read(text)
    if re.fullmatch(r"v\d+", address.alias) and (there := list(address.folder(address.alias).glob("*.ckpt"))):
        return there[0]  # a version never changes
    try:
        artifact = _found(address)
        folder = address.folder(artifact.version)
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):  # of several ranks, one downloads
            checkpoint = _downloaded(artifact, folder)
            _note(address, RunFolder(folder))
            return checkpoint
    except ValueError:
        raise
    except Exception as error:
        raise RuntimeError(
            f"{text} could not be fetched ({reason(error)}): check name, network and `wandb login`, or give a file"
        ) from error


def _found(address: Address) -> Any:
    import wandb

    if not wandb.login(prompt=False, verify=False):
        raise RuntimeError("not logged in")
    return wandb.Api(timeout=20).artifact("{}/{}/{}:{}".format(*address))


def _downloaded(artifact: Any, folder: Path) -> Path:
    """The checkpoint; of other files, only those that a run's folder has, and none that lies elsewhere."""
    entries = {name: entry for name, entry in artifact.manifest.entries.items() if entry.ref is None}
    checkpoints = [name for name in entries if name.endswith(".ckpt") and Path(name).name == name]
    if len(checkpoints) != 1:
        raise ValueError(
            f"the artifact {artifact.name} holds {len(checkpoints)} checkpoints: name one that vaezoo stored"
        )
    for path in (*_beside(_NAMES, _NAMES.best), Path(checkpoints[0])):  # the checkpoint last: once there, all is
        if path.name in entries:
            artifact.get_entry(path.name).download(root=str(folder), skip_cache=True)
    return folder / str(checkpoints[0])


def _note(address: Address, folder: RunFolder) -> None:
    """Let what is found out about a checkpoint go to the run that stored it, by what the user typed and no file."""
    kind, _, run = address.name.partition("-")
    if kind == TYPE:
        write_note(folder, {"id": run, "entity": address.entity, "project": address.project})


def _beside(folder: RunFolder, checkpoint: Path) -> list[Path]:
    return [folder.config, folder.labelled_ids, scores_of(checkpoint)]
