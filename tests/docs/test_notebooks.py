"""Notebooks: complete with their outputs, of public names alone, and running."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from tests.helpers.notebooks import BUDGET, NOTEBOOKS, PAGES, badge, execute, read_notebook, shortened
from tests.helpers.pages import DOCS, documented, resolved

PLACES = re.compile(r"(?<![\w.])/(?:home|root|work|tmp|usr|opt|Users|mnt|content)/")
MOST_BYTES = 3_000_000

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code(notebook: NotebookNode) -> Iterator[str]:
    """The Python of each cell, without commands for the shell and for IPython."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            yield re.sub(r"^( *)[!%](?:.*\\\n)*.*", r"\1pass", cell.source, flags=re.MULTILINE)


def test_there_are_six_and_they_are_small() -> None:
    assert [path.name[0] for path in NOTEBOOKS] == list("123456")
    assert sum(path.stat().st_size for path in NOTEBOOKS) < MOST_BYTES


@each
def test_a_notebook_is_complete(path: Path) -> None:
    notebook = read_notebook(path)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    assert 8 <= len(notebook.cells) <= 25
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "run it once, from the top"
    assert {output.output_type for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert sum(BUDGET in cell.metadata.get("tags", ()) for cell in cells) == 1
    assert not PLACES.search(re.sub(r'"image/png": "[^"]*"', "", path.read_text()))


@each
def test_it_opens_in_colab(path: Path) -> None:
    notebook = read_notebook(path)
    assert notebook.cells[0].source == badge(path.name)
    first = next(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert re.search(r'^if "google\.colab" in sys\.modules:\n    %pip install -q vaezoo', first, re.MULTILINE)


@each
def test_links_lead_to_pages(path: Path) -> None:
    text = "\n".join(cell.source for cell in read_notebook(path).cells if cell.cell_type == "markdown")
    links = re.findall(r"(?<!!)\[[^]!]*]\(([^)\s]+)\)", text)
    assert links
    for link in links:
        assert link.startswith(PAGES)
        assert (DOCS / link.removeprefix(PAGES)).is_file(), link


def own_names(tree: ast.AST) -> Iterator[str]:
    """Full names of what a cell takes from the project, as far as it names them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in ("vaezoo", "datamodules"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("vaezoo", "datamodules"):
            yield ast.unparse(node)


@each
def test_it_uses_public_names_alone(path: Path) -> None:
    public = {id(resolved(name)) for name in documented()}
    trees = [ast.parse(cell) for cell in code(read_notebook(path))]
    names = [name for tree in trees for name in own_names(tree)]
    assert names
    assert not [name for name in names if id(resolved(name)) not in public]
    attributes = [node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    assert not [name for name in attributes if name.startswith("_") and not name.endswith("__")]


@pytest.mark.slow
@pytest.mark.timeout(900)
@each
def test_it_runs(path: Path, tmp_path: Path) -> None:
    execute(shortened(read_notebook(path)), tmp_path)
