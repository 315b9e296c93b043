"""What a run's folder says of its run on Weights & Biases, and what the run must not say of its user."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vaezoo.runs.files import atomic_write
from vaezoo.runs.folder import RunFolder

Note = dict[str, str | None]
"""Id, entity, project, group and name of a run."""


def read_note(folder: RunFolder) -> Note:
    """What a run noted about itself; empty where it was not tracked."""
    return dict(json.loads(folder.tracking.read_text())) if folder.tracking.is_file() else {}


def write_note(folder: RunFolder, note: Note) -> None:
    """Note which run on W&B a folder's is."""
    with atomic_write(folder.tracking) as draft:
        draft.write_text(json.dumps(note, indent=2) + "\n")


def without_home(value: Any) -> Any:
    """Plain data with "~" in place of the user's home folder, whose name often is theirs."""
    if isinstance(value, dict):
        return {name: without_home(part) for name, part in value.items()}
    if isinstance(value, list):
        return [without_home(part) for part in value]
    home = str(Path.home())
    return re.sub(f"{re.escape(home)}(?=/|$)", "~", value) if isinstance(value, str) and home != "/" else value


@contextmanager
def nameless_arguments() -> Iterator[None]:
    """Let the command line that W&B records name no home folder; a study's has the whole paths of its files."""
    given = sys.argv
    sys.argv = without_home(given)
    try:
        yield
    finally:
        sys.argv = given
