"""Which version of the code made something."""

import subprocess
from pathlib import Path


def own_commit() -> str | None:
    """Commit of the clone that vaezoo runs from. None if it is installed. A growing record is no change of the code."""
    return commit(Path(__file__).parent, tracked=__file__, besides="experiments/results")


def commit(folder: Path, tracked: str | None = None, besides: str = "") -> str | None:
    """Commit of the repository around a folder, "-dirty" where files were changed; None without one.

    Args:
        folder: Any folder of the repository.
        tracked: A file that the repository must hold: an installed package may lie inside somebody else's.
        besides: A folder, from the repository's top, whose changes do not count.
    """
    try:
        if tracked is not None:
            _git(folder, "ls-files", "--error-unmatch", tracked)
        but = [f":(top,exclude){besides}"] if besides else []
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":(top)", *but)
        return _git(folder, "rev-parse", "HEAD") + "-dirty" * bool(changed)
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *args: str) -> str:
    command = ["git", "-C", str(folder), *args]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
