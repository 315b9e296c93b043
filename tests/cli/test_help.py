"""`--help`: commands by purpose, what people use first, a sentence an option, examples last."""

import re
import shlex

import pytest

from tests.helpers.parser import check_command, command_parser, fit_parser, lightning_parser
from tests.helpers.paths import ROOT
from vaezoo.__main__ import OVERVIEW
from vaezoo.cli.commands import OWN_COMMANDS
from vaezoo.cli.help import EXAMPLES, MOST_USED
from vaezoo.cli.main import COMMANDS, run

pytestmark = pytest.mark.xdist_group("studies")  # one worker makes the parser

LINES = sorted({line for text in EXAMPLES.values() for line in text.splitlines()})
LINES += re.findall(r"^  (vaezoo .*)$", OVERVIEW, re.MULTILINE)


def test_the_overview_has_every_command_once() -> None:
    named = re.findall(r"^  ([a-z]+)  ", OVERVIEW, re.MULTILINE)
    assert sorted(named) == sorted([*COMMANDS, *OWN_COMMANDS])


@pytest.mark.parametrize("line", LINES)
def test_examples_parse(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    check_command(shlex.split(line)[1:])


def test_every_command_has_examples_of_its_own() -> None:
    assert set(EXAMPLES) == {*COMMANDS, *OWN_COMMANDS}
    for command, text in EXAMPLES.items():
        assert all(line.startswith(f"vaezoo {command}") for line in text.splitlines())


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_help_begins_with_what_people_use_and_ends_with_examples(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run([command, "--help"])
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: vaezoo {command} ")
    assert [line.strip() for line in shown.strip().splitlines()][-2:] == EXAMPLES[command].splitlines()[-2:]
    if command == "fit":
        assert shown.index(MOST_USED) < shown.index("\noptions:\n") < shown.index("\nexamples:\n")


def test_the_ten_options_exist() -> None:
    options = re.findall(r"^  --(\S+)", MOST_USED, re.MULTILINE)
    assert len(options) == 10
    known = {name for action in fit_parser()._actions for name in action.option_strings}
    assert {f"--{name}" for name in options} - known == {"--data.labels"}  # of all datamodules


@pytest.mark.parametrize("command", [*COMMANDS, *OWN_COMMANDS])
def test_every_option_has_a_sentence(command: str) -> None:
    ours = command in OWN_COMMANDS
    for action in (command_parser(command) if ours else lightning_parser(command))._actions:
        if action.dest not in ("help", "subcommand", "print_completion"):
            assert len((action.help or "").split()) >= 3, action.dest
            assert not ours or str(action.help).endswith("."), action.dest
