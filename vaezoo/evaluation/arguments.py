"""Scores by name, with arguments where they are called like functions: `sap_dip(threshold=0.01)`."""

import ast
import inspect
from collections.abc import Iterable
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser

from vaezoo.evaluation.catalogue import METRICS, build, check

Arguments = dict[str, Any]
SETTLED = ("variant", "seed", "discrete", "attribute_names", "label_names")
"""Arguments that the score's name, the evaluation, the model or the data settle."""


def read_scores(entries: Iterable[str]) -> dict[str, Arguments]:
    """Read scores as people name them.

    Args:
        entries: A name of the catalogue each, or a call of it with arguments by name.

    Returns:
        Arguments by name of the score.

    Raises:
        ValueError: A score is unknown or named twice, or an argument is unknown or wrong.
    """
    found: dict[str, Arguments] = {}
    for entry in entries:
        name, bracket, inside = entry.partition("(")
        if bracket and not inside.endswith(")"):
            raise ValueError(f"{entry!r} lacks its closing bracket: quote it whole, '{name}(argument=1, other=2)'")
        check([name])
        if name in found:
            raise ValueError(f"{name} is named twice: evaluate once more for other arguments")
        found[name] = _typed(name, entry, _literals(entry)) if bracket else {}
    return found


def settable(name: str) -> dict[str, Any]:
    """Arguments of a score that may be chosen, with their types."""
    shell = build(name, 0)
    read = inspect.signature(shell.score).parameters  # a shell has arguments of all its variants
    own = inspect.signature(METRICS[name].build).parameters
    return {key: argument.annotation for key, argument in own.items() if key in read and key not in SETTLED}


def _literals(entry: str) -> Arguments:
    """Arguments as they are written, read as literals and never executed."""
    try:
        call = ast.parse(entry, mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args:
            given = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
            if len(given) == len(call.keywords):
                return given
    except (SyntaxError, ValueError):
        pass
    raise ValueError(f"{entry}: expected each argument once, by name and with a plain value, such as threshold=0.01")


def _typed(name: str, entry: str, given: Arguments) -> Arguments:
    """Arguments as the score's shell takes them."""
    known = settable(name)
    parser = ArgumentParser(exit_on_error=False)
    for key in given:
        if key not in known:
            raise ValueError(f"{name} has no argument {key!r}; it takes {', '.join(known) or 'none'}")
        parser.add_argument(f"--{key}", type=known[key])
    try:
        typed: Arguments = parser.parse_object(given).as_dict()
        build(name, 0, **typed)
    except (ArgumentError, ValueError) as error:
        raise ValueError(f"{entry}: {' '.join(str(error).split())}") from error
    return typed
