"""The README's Python runs as printed."""

import re
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

README = (ROOT / "README.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.S)


@pytest.mark.parametrize("code", SNIPPETS, ids=lambda code: str(code).splitlines()[0][:40])
def test_snippet_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})


def test_there_are_snippets_to_run() -> None:
    assert len(SNIPPETS) >= 2
