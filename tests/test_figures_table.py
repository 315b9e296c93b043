"""The table of experiments/README.md: every table and figure of the five papers, by commands that exist."""

import re
import shlex
from collections.abc import Iterator

import pytest

from tests.helpers.parser import fit_parser
from tests.helpers.paths import ROOT
from vaezoo.pictures.traversals import _figure_parser as figure_parser, _parser as traverse_parser
from vaezoo.study.expected import read_expected
from vaezoo.study.file import read_study
from vaezoo.study.reproduce import _parser as reproduce_parser

pytestmark = pytest.mark.xdist_group("studies")  # one worker makes the parser

FIGURES = {  # as the papers number them; letters are parts of a figure
    "Dupont, 2018": "Fig. 1|2|3|4|5|6|7|8|9a|9b|10a|10b",
    "Kumar et al., 2018": "Fig. 1|2|3|4|5|6; Table 1|2",
    "Hajimiri et al., 2021": "Fig. 1|2|3|4|5|6a|6b|7|8|9|10; Table 1|2|3|4|5|6",
    "Margonis et al., 2020": "Fig. 1|2|3|4|5; Table 1",
    "Nie et al., 2020": "Fig. 1|2|3a|3b|4|E.1|E.2|E.3|E.4; Table 1|D.1|D.2",
}


def rows() -> Iterator[list[str]]:
    """Paper, table or figure, command, what it writes."""
    section = (ROOT / "experiments" / "README.md").read_text().split("## Every table and figure")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and "---" not in line]
    for line in lines[1:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def commands() -> list[str]:
    return sorted({command for row in rows() for command in re.findall(r"`vaezoo ([^`]*)`", row[2])})


def test_no_table_or_figure_is_missing() -> None:
    for paper, listed in FIGURES.items():
        found = {
            figure for row in rows() if row[0] == paper for figure in re.findall(r"(?:Fig\.|Table) [\w.]*\w", row[1])
        }
        expected = set()
        for kind, numbers in (part.split(" ", 1) for part in listed.split("; ")):
            expected |= {f"{kind} {number}" for number in numbers.split("|")}
        assert found == expected, paper


def test_every_row_has_a_command_or_is_a_diagram() -> None:
    for row in rows():
        assert "`vaezoo " in row[2] or "nothing to run" in row[2], row


@pytest.mark.parametrize("command", commands())
def test_a_command_names_what_exists(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    name, *args = shlex.split(command)
    if name == "fit":
        fit_parser().parse_args([arg for arg in args if arg != "--print_config"])
    elif name in ("traverse", "figure"):
        (traverse_parser if name == "traverse" else figure_parser)().parse_args(args)
    else:
        assert name == "reproduce"
        study = reproduce_parser().parse_args(args).name
        assert read_study(ROOT / "experiments" / "studies" / f"{study}.yaml").name == study
        assert study in read_expected(ROOT / "experiments" / "expected.json")


@pytest.mark.parametrize("row", [row for row in rows() if "reproduce" in row[2]], ids=lambda row: row[1])
def test_a_study_draws_the_plots_of_its_row(row: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names = re.findall(r"`(\w+)`", row[3].partition("plots ")[2])
    for study in re.findall(r"`vaezoo reproduce (\w+)`", row[2]):
        drawn = {plot.stem for plot in read_study(ROOT / "experiments" / "studies" / f"{study}.yaml").plots}
        assert drawn >= set(names), study
