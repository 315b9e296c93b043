"""Processes of their own, for what a shared one cannot tell: peak memory, seconds to the first step."""

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


def peak_mb() -> float:
    """Most memory that this process has held so far, in MB.

    Not getrusage's ru_maxrss, which a process takes over from the one that started it.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
