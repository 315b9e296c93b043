"""The layout: which room imports which, how large rooms and files are, and what CONTRIBUTING says of them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import vaezoo
from tests.helpers.paths import ROOT
from vaezoo.specs import Specified, class_path, family

FILES = sorted(file for package in ("vaezoo", "datamodules") for file in (ROOT / package).rglob("*.py"))


def test_every_room_imports_only_from_those_below_it() -> None:
    """In a process of its own, as import-linter silences all loggers that are there."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_top_of_the_package_is_small() -> None:
    assert len(list((ROOT / "vaezoo").glob("*.py"))) <= 8


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_files_are_short_and_import_by_full_names(file: Path) -> None:
    text = file.read_text()
    assert len(text.splitlines()) <= 250
    assert not re.search(r"^\s*from \.", text, re.MULTILINE), "relative import"


def test_contributing_lists_every_room() -> None:
    listed = set(re.findall(r"^\| `([a-z_/]+/)`", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE))
    rooms = {f"vaezoo/{folder.name}/" for folder in (ROOT / "vaezoo").iterdir() if (folder / "__init__.py").is_file()}
    assert rooms <= listed
    assert {"datamodules/", "experiments/", "tests/"} <= listed
    assert not {name for name in listed if not (ROOT / name).is_dir()}


def test_everything_a_model_is_built_from_has_a_public_name() -> None:
    """What a checkpoint names must be found whatever file it moves to."""
    for name in vaezoo.__all__:
        getattr(vaezoo, name)
    ours = [cls for cls in family(Specified) if cls.__module__.startswith("vaezoo.")]
    inner = {"Specified", "PartedDrawing", "SpanningTerm", "LabelTerm"}  # bases, which nobody builds
    assert {cls.__name__ for cls in ours} - inner <= set(vaezoo.__all__)
    assert all(class_path(cls) == f"vaezoo.{cls.__name__}" for cls in ours if cls.__name__ not in inner)
