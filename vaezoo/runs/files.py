"""Files that are written whole or not at all, and read without executing anything."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path
from typing import Any

import yaml

DRAFT = ".part"
"""How the names of drafts end."""


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a draft to write to, which takes the place of the file once it is complete and on the disk.

    Whatever goes wrong meanwhile, a full disk or an interrupt, the file stays what it was and the draft is removed.

    Args:
        path: The file; its folder is made where it is missing.

    Raises:
        OSError: The file cannot be written; names it.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}{DRAFT}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(path)
        _flush_folder(path.parent)
    except OSError as error:
        # NumPy has no number for a write that fell short; it does so where the disk is full.
        raise OSError(error.errno or ENOSPC, error.strerror or str(error), str(path)) from error
    finally:
        draft.unlink(missing_ok=True)


def read_yaml(file: Path) -> Any:
    """Plain data from a YAML file; tags that would build objects are errors."""
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{file} is no YAML of plain data ({' '.join(str(error).split())}): restore it") from error


def _flush_folder(folder: Path) -> None:
    if os.name == "nt":  # folders cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
