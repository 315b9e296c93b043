"""Checks that the sections of a study's file share; each message says where."""

from collections.abc import Iterable, Mapping
from typing import Any

from vaezoo.text import did_you_mean


def mapping(given: Any, where: str) -> dict[str, Any]:
    """Keys with values; none where nothing is given."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"{where}: expected keys with values, got {given!r}")
    return dict(given)


def names(given: Any, where: str) -> list[str]:
    """A list of text."""
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise ValueError(f"{where}: expected a list of names, got {given!r}")
    return given


def known(given: Iterable[Any], choices: tuple[str, ...], where: str) -> None:
    """Raise ValueError for a key that is none of the choices, with the nearest of them."""
    for key in given:
        if key not in choices:
            hint = did_you_mean(str(key), choices) or f" (known: {', '.join(choices)})"
            raise ValueError(f"{where}: unknown key {key!r}{hint}")
