"""What the options of all commands have in common: how they are spelt, and what a checkpoint may be given as."""

import re
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any, NoReturn

from jsonargparse import ArgumentParser, DefaultHelpFormatter

from vaezoo.runs.folder import RunFolder
from vaezoo.runs.resuming import say
from vaezoo.text import printable

STRICT: dict[str, Any] = {"exit_on_error": False, "allow_abbrev": False}
"""Arguments of every parser: errors are raised, and options are spelt in full, as a short form changes its meaning
with the next option that begins alike."""


class KeepLines(RawDescriptionHelpFormatter, DefaultHelpFormatter):
    """Keeps the lines of what stands before and after the options."""


class CommandParser(ArgumentParser):
    """A parser whose errors tell `vaezoo.cli.errors` more: all options, or the command that misses one."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**STRICT, **kwargs)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Raise the error, with the names of all options, or of what is missing as it is spelt."""
        if message.startswith("unrecognized arguments"):
            message += f" (of {', '.join(self.get_defaults(skip_validation=True).keys())})"
        if found := re.fullmatch(r"(the following arguments are required: )(.+)", message):
            options = {action.dest for action in self._actions if action.option_strings}
            missing = [name.rpartition(".")[2] for name in found[2].split(", ")]  # copy.name of a command in a command
            names = [f"--{name}" if name in options else name.upper() for name in missing]
            message = f"{found[1]}{' and '.join(names)} (of {self.prog})"
        super().error(message, ex)


def checkpoint_in(given: str, continues: bool = False) -> str:
    """The checkpoint that is meant: the file itself, or one of a run's folder, which is said.

    Args:
        given: A file, the folder of a run, its `checkpoints` or that of a shared model; what is no folder here stays as
            it is.
        continues: Whether a training goes on from it: that takes the last checkpoint, all else the best one.

    Raises:
        FileNotFoundError: The folder holds no checkpoint.
    """
    folder = Path(given)
    if not folder.is_dir():
        return given
    run = RunFolder(folder)
    if run.weights.is_file():
        return str(run.weights)
    if folder.resolve().name == run.checkpoints.name:
        run = RunFolder(folder.resolve().parent if folder == Path() else folder.parent)
    found = [path for path in ([] if continues else [run.best]) if path.is_file()] or list(run.all_checkpoints())
    if not found:
        runs = [other.path for other in RunFolder.all_in(folder) if any(other.all_checkpoints())]
        hint = f"name one of its runs, say {runs[-1]}" if runs else "give the folder of a run, runs/EXPERIMENT/TIME"
        raise FileNotFoundError(f"{folder} holds no checkpoint: {hint}")
    kind = "best" if found[0] == run.best else "last" if found[0] == run.last else "newest"
    why = ", to resume" if continues else "" if kind == "best" else ", as it has no best one"
    say(printable(f"{folder}: using its {kind} checkpoint{why}, {found[0]}"))
    return str(found[0])
