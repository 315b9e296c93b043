"""Atomic writes, and reads that execute nothing."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path
from typing import Any

import yaml

DRAFT = ".part"
"""How the names of drafts end."""
MOST_BYTES = 1 << 18  # of a YAML file: some seconds to read
MOST_VALUES = 100_000  # of a YAML file, with every alias written out


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a draft to write to; it replaces the file once complete and flushed to disk.

    On any error, such as a full disk or an interrupt, the file stays unchanged and the draft is removed.

    Args:
        path: The file; missing folders are created.

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


def link(path: Path, name: Path) -> None:
    """Give a file a second name, replacing any file of that name; a copy if hard links are not supported."""
    with atomic_write(name) as draft:
        try:
            draft.hardlink_to(path)
        except OSError:
            shutil.copy2(path, draft)


def require_own_file(path: Path, home: Path) -> None:
    """Raise unless a path is a plain file of an untrusted folder: no links out of it, pipes or devices.

    Args:
        path: The file; a missing file passes.
        home: The folder; it may itself be reached by a link.

    Raises:
        ValueError: It is not the folder's own.
    """
    if not path.resolve().is_relative_to(home.resolve()):
        raise ValueError(f"{path} leads out of {home}: put the file itself there")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no plain file: put the file itself there")


def read_yaml(file: Path) -> Any:
    """Plain data from a YAML file. Tags that build objects and YAML bombs are errors."""
    try:
        if file.exists() and not file.is_file():
            raise yaml.YAMLError("it is no plain file")
        if file.stat().st_size > MOST_BYTES:
            raise yaml.YAMLError(f"it has more than {MOST_BYTES >> 10} kB")
        text = file.read_text(encoding="utf-8")
        check_aliases(text)
        return yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{file} is no YAML of plain data ({' '.join(str(error).split())}): restore it") from error


def check_aliases(text: str) -> None:
    """Refuse a short YAML text whose aliases stand for more than any configuration holds.

    Raises:
        YAMLError: They do, or the text is no YAML.
    """
    counts: dict[int, int] = {}

    def count(node: yaml.Node) -> int:
        if id(node) not in counts:
            counts[id(node)] = MOST_VALUES  # until it is known: a node that holds itself has no end
            inside = node.value if isinstance(node, yaml.CollectionNode) else []
            parts = [part for entry in inside for part in (entry if isinstance(entry, tuple) else [entry])]
            counts[id(node)] = 1 + sum(map(count, parts))
        return counts[id(node)]

    if "*" in text and (node := yaml.compose(text, yaml.SafeLoader)) is not None and count(node) > MOST_VALUES:
        raise yaml.YAMLError(f"its aliases stand for more than {MOST_VALUES} values")


def _flush_folder(folder: Path) -> None:
    if os.name == "nt":  # folders cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
