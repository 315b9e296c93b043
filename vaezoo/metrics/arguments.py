"""Parse score names with latent groups and arguments: `sap_dip[y](threshold=0.01)`."""

import ast
import inspect
from collections.abc import Iterable
from typing import Any, NamedTuple

from jsonargparse import ArgumentError, ArgumentParser

from vaezoo.metrics.catalogue import METRICS, build, check

Arguments = dict[str, Any]
SETTLED = ("variant", "seed", "discrete", "attribute_names", "label_names")
"""Arguments that the score's name, the evaluation, the model or the data settle."""


class Chosen(NamedTuple):
    """A requested score.

    Attributes:
        name: Its name in the catalogue.
        latents: Latent groups to read. None means those of the evaluation.
        arguments: Arguments of its metric class.
    """

    name: str
    latents: tuple[str, ...] | None
    arguments: Arguments

    @property
    def label(self) -> str:
        """Name of its results."""
        return self.name if self.latents is None else f"{self.name}[{','.join(self.latents)}]"


def read_scores(entries: Iterable[str]) -> dict[str, Chosen]:
    """Parse score names.

    Args:
        entries: Names from the catalogue, optionally with latent groups in square brackets and keyword arguments in
            parentheses: `mig_20`, `mig_20[y]`, `sap_dip[y,z](threshold=0.01)`.

    Returns:
        Scores by label.

    Raises:
        ValueError: A score is unknown or named twice, or an argument is unknown or wrong.
    """
    found: dict[str, Chosen] = {}
    for entry in entries:
        head, bracket, inside = entry.partition("(")
        if bracket and not inside.endswith(")"):
            raise ValueError(f"{entry!r} lacks its closing bracket: quote it whole, '{head}(argument=1, other=2)'")
        name, latents = _groups(head)
        check([name])
        arguments = _typed(name, entry, _literals(name + bracket + inside)) if bracket else {}
        chosen = Chosen(name, latents, arguments)
        if chosen.label in found:
            raise ValueError(f"{chosen.label} is named twice: evaluate once more for other arguments")
        found[chosen.label] = chosen
    return found


def _groups(head: str) -> tuple[str, tuple[str, ...] | None]:
    """Name of a score and the latent groups behind it."""
    name, bracket, inside = head.partition("[")
    if not bracket:
        return name, None
    groups = tuple(group.strip() for group in inside.removesuffix("]").split(","))
    if not inside.endswith("]") or not all(group.isidentifier() for group in groups):
        raise ValueError(f"{head!r}: expected latent groups in square brackets, such as {name}[y] or {name}[y,z]")
    return name, groups


def settable(name: str) -> dict[str, Any]:
    """Arguments of a score that users may set, with their types."""
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
