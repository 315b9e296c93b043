"""Processes of their own for what is measured: peak memory and seconds to the first step mean nothing in a shared one."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class ChildError(RuntimeError):
    """A child ended without a result."""


def result_of(python: Path | str, module: str, args: Sequence[str], folder: Path) -> dict[str, Any]:
    """Run a module of this repository in a folder and read the line of JSON that it prints last.

    Raises:
        ChildError: It failed; the message is the last line that it wrote.
    """
    command = [str(python), "-m", module, *args]
    try:
        done = subprocess.run(
            command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
        )
    except OSError as error:
        raise ChildError(str(error)) from error
    if done.returncode:
        raise ChildError(
            (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        )
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
