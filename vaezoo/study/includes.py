"""Files that a configuration names: what is in them belongs to the identity of a run."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vaezoo.runs.files import read_yaml

YAML = (".yaml", ".yml", ".json")


def included_files(content: Any, folder: Path) -> dict[str, str]:
    """Checksums of the files that plain data names, and of those that they name in turn, by name.

    Args:
        content: A configuration, or options.
        folder: Where names start; the current folder is tried as well.
    """
    found: dict[str, str] = {}
    _collect(content, folder, found)
    return found


def digest(content: str | bytes) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def _collect(content: Any, folder: Path, found: dict[str, str]) -> None:
    for name in _texts(content):
        path = next((path for path in (folder / name, Path(name)) if _is_file(path)), None)
        if path is not None and name not in found:
            inside = _plain(path)
            # Comments and layout of a configuration do not count.
            plain = json.dumps(inside, sort_keys=True, default=str)
            found[name] = digest(path.read_bytes() if inside is None else plain)
            _collect(inside, path.parent, found)


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, (dict, list)):
        for item in content.values() if isinstance(content, dict) else content:
            yield from _texts(item)


def _is_file(path: Path) -> bool:
    try:
        return bool(path.suffix) and path.is_file()
    except (OSError, ValueError):  # no name of a file at all
        return False


def _plain(path: Path) -> Any:
    try:
        return read_yaml(path) if path.suffix in YAML else None
    except ValueError:
        return None
