"""Tests share code through tests/helpers alone."""

import ast
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

FILES = sorted((ROOT / "tests").rglob("*.py"))


def imported(file: Path) -> set[str]:
    """Every module that a file names in an import, and what it takes from it, as it may be a module too."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_nothing_is_imported_from_a_test_or_a_conftest(file: Path) -> None:
    ours = {name for name in imported(file) if name.startswith(("tests.", "."))}
    assert not {name for name in ours if any(part.startswith(("test_", "conftest", ".")) for part in name.split("."))}
    in_helpers = "helpers" in file.parts
    assert not in_helpers or all(name.startswith("tests.helpers") for name in ours), "helpers know no folder of tests"
