"""Every private name of jsonargparse that is used; `tests/test_fences.py` has a test a name.

The texts of its errors are no interface either: `vaezoo/cli/errors.py` alone reads them.
"""

from typing import Any

from jsonargparse import ArgumentParser


def set_type(parser: ArgumentParser, prefix: str, typehint: Any) -> None:
    """Change the type of options that a signature has added, which the public API takes from there alone."""
    for action in parser._actions:
        if action.dest.startswith(prefix):
            action._typehint = typehint  # type: ignore[attr-defined]  # of the actions that read type hints


def set_help(parser: ArgumentParser, name: str, text: str) -> None:
    """Change the help of an option that a signature has added, which the public API takes from its docstring alone."""
    for action in parser._actions:
        if action.dest == name:
            action.help = text
