"""Commands in processes of their own, forked from this one: importing takes longer than what most of them do."""

import atexit
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from vaezoo.__main__ import main


class Forked:
    """`vaezoo` with arguments, as `subprocess.Popen` would start it, with everything imported already.

    Args:
        args: Arguments of `vaezoo`.
        said: File that its output is added to.
        folder: Where it runs.
        environment: All of its environment; this process's by default.
    """

    def __init__(
        self, args: list[str], said: Path, folder: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.said = said.absolute()
        self.returncode: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            _become(args, self.said, folder or Path.cwd(), dict(os.environ if environment is None else environment))

    def poll(self) -> int | None:
        """Its exit code once it has ended, negative for a signal."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode

    def wait(self, seconds: float = 250) -> int:
        """Its exit code."""
        end = time.monotonic() + seconds
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                raise TimeoutError(self.said.read_text()[-3000:])
            time.sleep(0.01)
        return code


def command(args: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Exit code and output of a command in a process of its own."""
    said = folder / "said.txt"
    said.unlink(missing_ok=True)
    code = Forked(args, said, folder, environment).wait()
    output = said.read_text()
    said.unlink()
    return code, output


def _become(args: list[str], said: Path, folder: Path, environment: dict[str, str]) -> NoReturn:
    """What a new process would do: nothing of pytest's is left that could act in its name."""
    code = 1
    try:
        atexit._clear()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(output, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = sys.__stdout__ = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
        sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        sys.argv = ["vaezoo", *args]
        code = main(args)
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code)
