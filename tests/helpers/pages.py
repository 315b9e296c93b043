"""The pages that users read, and the code and commands in them."""

import importlib
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.helpers.paths import ROOT

DOCS = ROOT / "docs"
SITE = sorted(page for page in DOCS.rglob("*.md") if not {"_build", "generated"} & set(page.parts))
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "experiments" / "README.md", *SITE]
FENCE = re.compile(r"^(`{3,}|:{3,})([^\n`]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
SHELL = ("", "bash", "sh", "console")


class Piece(NamedTuple):
    """A block of code, or a command, and the page that it is from."""

    page: Path
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.text.splitlines()[0][:60]}"


def fenced(*languages: str) -> list[Piece]:
    """All blocks in one of these languages."""
    return [
        Piece(page, code)
        for page in PAGES
        for _, language, code in FENCE.findall(page.read_text())
        if language.strip() in languages
    ]


def notebook_commands() -> Iterator[Piece]:
    """What notebooks give to the shell; a number stands for each of their variables."""
    for page in NOTEBOOKS:
        for cell in json.loads(page.read_text())["cells"]:
            source = "".join(cell["source"]).replace("\\\n", " ")
            for line in re.findall(r"^!(.*)", source if cell["cell_type"] == "code" else "", re.MULTILINE):
                yield Piece(page, re.sub(r"\{\w+\}", "1", line.partition(" > ")[0]))


def commands() -> list[Piece]:
    """All commands in blocks for the shell and in notebooks, one line each, without comments; each once."""
    found = {}
    for page, code in [*fenced(*SHELL), *notebook_commands()]:
        for line in code.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words:
                found.setdefault(shlex.join(words), page)
    return [Piece(page, text) for text, page in found.items()]


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", page.read_text())


def documented() -> Iterator[str]:
    """Full names of everything in the API reference."""
    module = ""
    for line in (DOCS / "api.md").read_text().splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.match(r"\.\. py:type:: (\S+)", line):
            yield match[1]
        elif match := re.match(r" {3}([A-Za-z][\w.]*)$", line):
            yield f"{module}.{match[1]}"


def resolved(name: str) -> object:
    """What a full name stands for."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except AttributeError:
        pytest.fail(f"docs/api.md lists {name}, which is not there")
