"""Options of every command, handled before the command parses its own. Imports little: `vaezoo --help` shows them."""

import os
import sys
from argparse import ArgumentError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from vaezoo.specs import IMPORTS

DEBUG = "VAEZOO_DEBUG"
COMMON = ("debug", "import")
"""Options of every command."""
HELP = f"""\
options of every command:
  --import MODULE          import your own models, networks, regularizers or data first, installed or from the
                           current folder; separate several by commas or repeat the option (or set {IMPORTS})
  --debug                  show output of other packages and tracebacks of errors (or set {DEBUG}=1)
"""


def split_common_options(args: Sequence[str]) -> tuple[list[str], list[str], bool]:
    """A command's own arguments, the modules to import, and whether errors show their traceback.

    Args:
        args: The command line; what the environment says is added.

    Raises:
        ArgumentError: --import names no module.
    """
    own: list[str] = []
    named = [os.environ.get(IMPORTS, "")]
    words = iter(args)
    for word in words:
        option, equals, value = word.partition("=")
        if option == "--import":
            value = value if equals else next(words, "")
            if not value or value.startswith("-"):
                raise ArgumentError(None, "--import needs the name of a module, for example --import my_models")
            named.append(value)
        elif word != "--debug":
            own.append(word)
    modules = [name.strip() for value in named for name in value.split(",") if name.strip()]
    return own, list(dict.fromkeys(modules)), "--debug" in args or os.environ.get(DEBUG, "") not in ("", "0")


@contextmanager
def imported(modules: Sequence[str]) -> Iterator[None]:
    """Import modules, for this process and, through the environment, for those that it starts.

    The current folder comes last on the path, for modules and for classes that options name: what lies there hides
    nothing that is installed.

    Raises:
        ArgumentError: One of them cannot be imported.
    """
    before, path = os.environ.get(IMPORTS), list(sys.path)
    try:
        sys.path.append(os.getcwd())  # noqa: PTH109
        if modules:
            os.environ[IMPORTS] = ",".join(modules)
        for name in modules:
            _import(name)
        yield
    finally:
        sys.path[:] = path
        if modules:
            os.environ.pop(IMPORTS)
        if before is not None:
            os.environ[IMPORTS] = before


def no_module(name: str) -> str:
    """What to do where a module is not found."""
    return (
        f"there is no module {name!r}, neither installed nor in the current folder: put the folder that holds it on "
        "the path, PYTHONPATH=FOLDER vaezoo …, or start vaezoo there"
    )


def _import(name: str) -> None:
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        missing = str(error.name)
        if name == missing or name.startswith(f"{missing}."):
            raise ArgumentError(None, f"--import {name}: {no_module(missing)}") from error
        raise ArgumentError(None, f"--import {name}: it needs the module {missing!r}, which is missing") from error
    except Exception as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ArgumentError(None, f"--import {name}: it failed, --debug shows where ({why})") from error
