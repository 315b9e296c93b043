"""`vaezoo fit` in a process of its own that is killed at a moment of one's choice.

The process is a fork of this one, which has loaded everything already: a start takes no seconds.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch

from vaezoo.cli.main import run
from vaezoo.models.base import VAE

MOMENTS: dict[str, tuple[Any, str]] = {
    "training": (VAE, "training_step"),
    "validation": (VAE, "validation_step"),
    "save": (torch, "save"),
    "flush": (os, "fsync"),
    "rename": (Path, "replace"),
    "link": (Path, "hardlink_to"),
}
"""Functions before or after one of whose calls a process dies."""


class Kill(NamedTuple):
    """When to kill: at a call of a function, or after a time."""

    moment: str
    count: int = 1
    after: bool = False
    seconds: float = 0.0

    @classmethod
    def at_random(cls, chance: Random, seconds: float) -> "Kill":
        """Any moment of a run that lasts so long."""
        moment = chance.choice(("time", *MOMENTS))
        return cls(moment, chance.randint(1, 12), chance.random() < 0.5, chance.uniform(0, seconds))

    def __str__(self) -> str:
        if self.moment == "time":
            return f"{self.seconds:.2f} s"
        return f"{self.moment} {self.count}{'+' if self.after else ''}"


def fit(args: Sequence[str], folder: Path, kill: Kill | None = None) -> tuple[int, str, float]:
    """Exit code, or minus the signal, of a command, what it printed and how many seconds it took."""
    said, start = folder / "said.txt", time.monotonic()
    pid = os.fork()
    if not pid:
        _become(args, folder, said, kill)
    if kill is not None and kill.moment == "time":
        time.sleep(kill.seconds)
        os.kill(pid, signal.SIGKILL)  # a process that has ended still has its id, as nobody waited for it
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), said.read_text(), time.monotonic() - start


def _become(args: Sequence[str], folder: Path, said: Path, kill: Kill | None) -> None:
    """The child: never returns."""
    code = 70
    try:
        os.chdir(folder)
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if kill is not None and kill.moment in MOMENTS:
            _arm(kill)
        code = run(list(args))
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _arm(kill: Kill) -> None:
    owner, name = MOMENTS[kill.moment]
    function: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == kill.count and not kill.after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*args, **kwargs)
        if calls == kill.count:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, call)
