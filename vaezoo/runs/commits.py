"""Which version of the code made something."""

import subprocess
from pathlib import Path


def own_commit() -> str | None:
    """Commit of the clone that vaezoo runs from. None if it is installed."""
    return commit(Path(__file__).parent, tracked=__file__)


def commit(folder: Path, tracked: str | None = None) -> str | None:
    """Commit of the repository around a folder, "-dirty" where files were changed; None without one.

    Args:
        folder: Any folder of the repository.
        tracked: A file that the repository must hold: an installed package may lie inside somebody else's.
    """
    try:
        if tracked is not None:
            _git(folder, "ls-files", "--error-unmatch", tracked)
        return _git(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *args: str) -> str:
    command = ["git", "-C", str(folder), *args]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
