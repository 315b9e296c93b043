"""Checkpoints that lie elsewhere: fetched before a command reads its options."""

from collections.abc import Callable, Sequence
from pathlib import Path

from vaezoo.sharing.addresses import SCHEMES, fetch_shared
from vaezoo.tracking.artifacts import SCHEME, fetch

FETCH: dict[str, Callable[[str], Path]] = {SCHEME: fetch, **dict.fromkeys(SCHEMES, fetch_shared)}
"""What fetches an address, by how it begins."""


def fetch_named(args: Sequence[str]) -> list[str]:
    """Arguments of a command, with the path of a file or folder in place of each address of a checkpoint."""
    return [_fetched_word(word) for word in args]


def _fetched_word(word: str) -> str:
    option, equals, value = word.partition("=")
    if option not in ("--ckpt_path", "--init_from"):
        option, equals, value = "", "", word
    for scheme, get in FETCH.items():
        if value.startswith(scheme):
            return f"{option}{equals}{get(value)}"
    return word
