"""Pictures are read by the readers of a few formats: those of others, such as EPS, start programs."""

import ast
import os
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image

from datamodules.pictures import cached_pictures
from tests.helpers.paths import ROOT
from vaezoo.report.pictures import from_file

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What Ghostscript leaves where it is started: a program of that name comes first on the path."""
    program, trace = tmp_path / "bin" / "gs", tmp_path / "trace"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {trace}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None, raising=False)  # looked for once
    return trace


def test_no_program_is_started_for_a_picture_of_another_format(tmp_path: Path, trace: Path) -> None:
    (tmp_path / "a.png").write_bytes(EPS)
    with pytest.raises(Exception, match="cannot identify image file"):
        from_file(tmp_path / "a.png", 8)
    assert not trace.exists()
    with pytest.raises(ValueError, match=r"a\.png cannot be used \(cannot identify image file"):
        cached_pictures(tmp_path / "cache", tmp_path, ["a.png"], (3, 8, 8), lambda picture: picture.convert("RGB"))
    assert not trace.exists()
    with suppress(OSError), Image.open(tmp_path / "a.png") as picture:
        picture.load()
    assert trace.exists(), "Pillow itself would have started it"


def test_every_reader_names_its_formats() -> None:
    for file in [*ROOT.glob("vaezoo/**/*.py"), *ROOT.glob("datamodules/**/*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Image.open":
                assert "formats" in [word.arg for word in node.keywords], f"{file}:{node.lineno}"
