"""Every command in the pages parses, and every Python block runs."""

import os
import re
import shlex
from pathlib import Path

import pytest
import torch

from tests.helpers.pages import PAGES, Piece, commands, fenced
from tests.helpers.parser import check_command
from tests.helpers.paths import ROOT
from vaezoo.cli.commands import OWN_COMMANDS
from vaezoo.cli.main import COMMANDS

pytestmark = pytest.mark.xdist_group("studies")  # one worker makes the parser

OTHERS = {"git", "ls", "mlflow", "pip", "python", "source", "tensorboard", "ulimit", "wandb"}
"""Programs of others, whose options are not checked."""
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def vaezoo_command(words: list[str]) -> list[str]:
    """What follows `vaezoo`, whoever starts it; empty for programs of others."""
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    for i, word in enumerate(words):
        if word.rpartition("/")[2] == "vaezoo":
            return words[i + 1 :]
    return []


@pytest.mark.parametrize("command", commands(), ids=str)
def test_a_command_parses(command: Piece, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = shlex.split(command.text)
    own = vaezoo_command(words)
    if own:
        check_command(own)
    elif words[0] == "make":
        assert set(words[1:2]) <= TARGETS
    else:
        assert os.path.basename(words[0]) in OTHERS or "=" in words[0], command.text  # noqa: PTH119


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_within_sentences_exist(page: Path) -> None:
    names = re.findall(r"`vaezoo ([a-z]+)", page.read_text())
    assert set(names) <= {*COMMANDS, *OWN_COMMANDS}
    assert set(re.findall(r"`make ([a-z-]+)", page.read_text())) <= TARGETS


@pytest.mark.parametrize("code", fenced("python"), ids=str)
def test_python_runs(code: Piece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    exec(compile(code.text, str(code.page), "exec"), {"__name__": "__main__"})


def test_there_is_something_to_check() -> None:
    assert len(commands()) > 30
    assert len(fenced("python")) >= 3
