"""The file that `vaezoo report` writes."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import vaezoo.report.page as page_module
from tests.helpers.report import EVIL
from vaezoo.__main__ import OVERVIEW
from vaezoo.cli.main import run
from vaezoo.report.page import Entry, page
from vaezoo.report.runs import Run, read_run

pytestmark = pytest.mark.xdist_group("report")


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.data = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]

    def handle_data(self, data: str) -> None:
        if data.startswith('{"written"'):
            self.data = data


def content(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Tags(text).data)
    return found


def test_one_file_holds_everything(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "new" / "report.html"
    assert run(["report", str(runs), "-o", str(output)]) == 0
    assert f"report: {output}" in capsys.readouterr().out
    assert [file.name for file in output.parent.iterdir()] == ["report.html"]
    text = output.read_text()
    assert all(address.startswith("#") for address in Tags(text).addresses)
    assert set(re.findall(r"https?://[^\"'\s]+", text)) == {"http://www.w3.org/2000/svg"}
    shown = {entry["folder"].split("/")[0]: entry for entry in content(text)["runs"]}
    assert set(shown) == {"beta", "joint", "stranger"}
    assert (shown["beta"]["name"], shown["joint"]["name"]) == ("BetaVAE", "JointVAE"), "by what differs"
    names = [picture["name"] for picture in shown["beta"]["pictures"]]
    assert names == sorted(file.stem for file in runs.glob("beta/*/pictures/*.png"))
    assert "reconstructions" in names
    assert shown["beta"]["drawn"]["step"] == shown["joint"]["step"] == 6
    assert {unit["name"] for unit in shown["joint"]["drawn"]["units"]} == {"z0", "z1", "c0", "c1"}
    assert shown["stranger"]["drawn"] is None
    assert "so nothing can be drawn" in shown["stranger"]["notes"][0]


def test_nothing_that_a_stranger_wrote_becomes_markup(runs: Path) -> None:
    plain = page([])
    (folder,) = runs.glob("stranger/*")
    text = page([Entry(read_run(folder), None, [])])
    assert Tags(text).tags == Tags(plain).tags
    (entry,) = content(text)["runs"]
    assert entry["settings"]["model." + EVIL] == str([EVIL])
    assert EVIL in entry["scores"]


def test_marks_in_the_data_are_not_replaced() -> None:
    (entry,) = content(page([Entry(Run("@@script@@", Path()), None, [])]))["runs"]
    assert entry["name"] == "@@script@@"


def test_many_runs(beta: Path, tmp_path: Path) -> None:
    for i in range(12):
        (tmp_path / "many" / f"{i:02}").mkdir(parents=True)
        for file in ("config.yaml", "metrics.csv", "checkpoints"):
            copy = shutil.copytree if (beta / file).is_dir() else shutil.copy
            copy(beta / file, tmp_path / "many" / f"{i:02}" / file)
    assert run(["report", str(tmp_path / "many"), "--max_units=2", "-o", str(tmp_path / "report.html")]) == 0
    # Fifty would take less than 15 MB; noise, as untrained decoders draw it, is the worst case.
    assert (tmp_path / "report.html").stat().st_size < 12 * 15e6 / 50
    names = [entry["name"] for entry in content((tmp_path / "report.html").read_text())["runs"]]
    assert names == [f"many/{i:02}" for i in reversed(range(12))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the folder of a run"),
        (["nowhere"], "nowhere is no folder: expected a run's folder"),
        (["{joint}", "-o", "{tmp}"], "it is a folder; name a file"),
        (["{joint}", "-o", "{joint}/config.yaml/report.html"], "cannot write"),
        (["{joint}", "--max_units", "much"], "unit"),
    ],
)
def test_errors_are_one_line(
    joint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["report", *(argument.format(joint=joint, tmp=tmp_path) for argument in arguments)]) != 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("vaezoo: error: ")
    assert message in line


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "report.html"
    output.write_text("old")

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left on device"):
        page_module.write_page(output, [])
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("report.html", "old")]


def test_the_overview_names_the_command() -> None:
    assert "vaezoo report" in OVERVIEW
