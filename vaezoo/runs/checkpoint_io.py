"""Checkpoints on disk: written atomically, verified before reading."""

import errno
import pickle
import shutil
import time
import zipfile
from pathlib import Path, PurePath, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

import torch
from lightning.fabric.utilities.cloud_io import get_filesystem
from lightning.pytorch.plugins import TorchCheckpointIO

from vaezoo.runs.files import DRAFT, atomic_write
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.shared import read_shared

_STALE = 600.0  # seconds without a write after which a partial file belongs to no live process


class DamagedCheckpointError(RuntimeError):
    """A checkpoint is truncated or was changed after it was written."""


class OpenCheckpoint(NamedTuple):
    """A checkpoint that was verified and read, for whoever needs its content next."""

    path: Path
    content: dict[str, Any]


def verify_checkpoint(path: Path) -> None:
    """Read every byte of a checkpoint and compare it with the checksums that it holds (CRC-32 of each zip record)."""
    if not path.is_file():
        raise FileNotFoundError(f"no checkpoint at {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            record = archive.testzip()
    except Exception as error:  # whatever a damaged header leads to
        raise _damaged(path, error) from error
    if record is not None:
        raise _damaged(path, f"the checksum of {record} is wrong")


def read_checkpoint(path: Path, map_location: Any = "cpu", mmap: bool = False, verify: bool = True) -> dict[str, Any]:
    """Verify and load a checkpoint. Reads only tensors and plain data; nothing in the file is executed.

    Args:
        path: The file, or the weights of a shared model.
        map_location: Device to load to, as in `torch.load`.
        mmap: Memory-map tensors instead of reading them.
        verify: Compare every byte with its checksum first; else for a look that decides nothing by itself.
    """
    if path.name == RunFolder(path.parent).weights.name:
        return read_shared(path)
    if verify:
        verify_checkpoint(path)
    try:
        checkpoint = torch.load(path, map_location=map_location, weights_only=True, mmap=mmap)
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} holds more than tensors and plain data; nothing in it was executed: give one that vaezoo wrote"
        ) from error
    except (EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise _damaged(path, error) from error  # torch's own reader is stricter about a zip file's directory
    if not isinstance(checkpoint, dict) or not isinstance(checkpoint.get("state_dict"), dict):
        raise ValueError(f"{path} is no checkpoint: it holds no state_dict; give one that vaezoo wrote")
    _keep_paths_inside(checkpoint, path.parent)
    return checkpoint


def fetch_checkpoint(address: str) -> dict[str, Any]:
    """Load a checkpoint from afar, say `s3://…`, with the checks of one that lies here."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / PurePosixPath(address).name
        try:
            with get_filesystem(address).open(address, "rb") as source, path.open("wb") as file:
                shutil.copyfileobj(source, file)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"no checkpoint at {address}") from error
        try:
            return read_checkpoint(path)
        except (DamagedCheckpointError, ValueError) as error:
            raise type(error)(str(error).replace(str(path), address)) from error


def write_checkpoint(checkpoint: dict[str, Any], path: Path) -> None:
    """Save to a draft, verify, then rename: even if killed, `path` is either the old or the new file."""
    with atomic_write(path) as draft:
        with draft.open("wb") as file:
            _save(checkpoint, file)
        verify_checkpoint(draft)


def remove_stale_drafts(folder: Path) -> None:
    """Remove drafts of killed writes from a folder; active drafts stay."""
    for partial in folder.glob(f"*{DRAFT}"):
        if time.time() - partial.stat().st_mtime > _STALE:
            partial.unlink(missing_ok=True)


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes checkpoints atomically and verifies them on save and on load.

    Lightning's own plugin uses fsspec, which writes to the system's temporary folder and moves the file: a copy if that
    is another disk. It neither flushes nor checks.

    Args:
        opened: A checkpoint that was read before: the first load of its path gets this content, and the file is not
            read again.
    """

    def __init__(self, opened: OpenCheckpoint | None = None) -> None:
        self._opened = opened

    def __getstate__(self) -> dict[str, Any]:
        """Without the content: a process that is started with a copy of this one reads the file itself."""
        return {**self.__dict__, "_opened": None}

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Save a checkpoint; `storage_options` must be None."""
        if is_remote(path) or storage_options is not None:
            super().save_checkpoint(checkpoint, path, storage_options)
        else:
            write_checkpoint(checkpoint, Path(path))

    def load_checkpoint(
        self, path: str | Path, map_location: Any = lambda storage, _: storage, weights_only: bool | None = True
    ) -> dict[str, Any]:
        """Load a checkpoint; nothing in it is executed, whatever `weights_only` says."""
        opened, self._opened = self._opened, None  # handed on once: whoever loads it may change it, and frees it
        if opened is not None and opened.path == Path(path):
            return opened.content
        return fetch_checkpoint(str(path)) if is_remote(path) else read_checkpoint(Path(path), map_location)


def _save(checkpoint: dict[str, Any], file: IO[bytes]) -> None:
    try:
        torch.save(checkpoint, file)
    except RuntimeError as error:  # torch hides the system's error behind one of its own
        raise OSError(errno.ENOSPC, "the disk seems to be full", file.name) from error


def _damaged(path: Path, reason: object) -> DamagedCheckpointError:
    older = path.with_name(RunFolder.of(path).previous.name)
    remedy = f"; the one before it is {older}" if older != path and older.is_file() else ""
    return DamagedCheckpointError(f"{path} is damaged ({' '.join(str(reason).split())}){remedy}")


def is_remote(path: str | Path) -> bool:
    """Whether a path is an address of somewhere else."""
    return "://" in str(path)


def _keep_paths_inside(checkpoint: dict[str, Any], folder: Path) -> None:
    """Let paths in the state of callbacks mean files beside the checkpoint, and no others.

    They were true where and when the run was trained. Since then its folder may have moved, the current folder may be
    another one, and whoever made the checkpoint may have named any file of the user's.
    """

    def beside(path: Any) -> str:
        file = folder / PurePath(str(path)).name
        return str(file) if file.is_file() and not file.is_symlink() else ""

    callbacks = checkpoint.get("callbacks")
    for state in callbacks.values() if isinstance(callbacks, dict) else ():
        if isinstance(state, dict) and "dirpath" in state:
            state["dirpath"] = str(folder)
            for name in [name for name in state if name.endswith("_model_path")]:
                state[name] = beside(state[name])
            scores = state.get("best_k_models")
            if isinstance(scores, dict):
                state["best_k_models"] = {beside(path): score for path, score in scores.items() if beside(path)}
