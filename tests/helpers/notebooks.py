"""The notebooks of the site: how they are read, run and saved."""

import os
import re
import sys
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

from tests.helpers.pages import DOCS, NOTEBOOKS
from tests.helpers.paths import ROOT

sys.path.insert(0, str(DOCS))
from notebook_pages import PAGES, badge

__all__ = ["BUDGET", "NOTEBOOKS", "PAGES", "badge", "cleaned", "execute", "read_notebook", "shortened"]

BUDGET = "budget"
"""Tag of the cell with the numbers of steps, images and so on that a notebook's time depends on."""
SHORTER = 50


def read_notebook(path: Path) -> NotebookNode:
    """A notebook as its file holds it."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def shortened(notebook: NotebookNode) -> NotebookNode:
    """The same with smaller numbers in its cell of budgets: enough to see that all of it runs."""
    for cell in notebook.cells:
        if BUDGET in cell.metadata.get("tags", ()):
            cell.source = re.sub(r"(?<== )[\d_]+", lambda found: str(max(2, int(found[0]) // SHORTER)), cell.source)
    return notebook


def execute(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Run all cells in a folder, with this Python and its commands."""
    first = {"PATH": Path(sys.executable).parent, "PYTHONPATH": ROOT}
    paths = {name: os.pathsep.join([str(place), os.environ.get(name, "")]) for name, place in first.items()}
    environment = {**os.environ, **paths, "OMP_NUM_THREADS": "1"}
    client = NotebookClient(
        notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=environment)
    return notebook


def cleaned(notebook: NotebookNode, name: str) -> NotebookNode:
    """What is worth keeping: no log on stderr, no times of execution, nothing of the machine that ran it."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.source = re.sub(r"https://github\.com/[\w-]+/[\w-]+/blob/main/docs/", PAGES, cell.source)
        cell.metadata = {key: value for key, value in cell.metadata.items() if key == "tags"}
        if cell.cell_type == "code":
            cell.outputs = _without_log(cell.outputs)
            for data in (output.get("data", {}) for output in cell.outputs):
                if "image/png" in data:
                    data["image/png"] = _smaller(data["image/png"])
    notebook.cells[0].source = badge(name)
    return notebook


def _without_log(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs without stderr; what was printed in pieces is one text."""
    kept: list[NotebookNode] = []
    for output in outputs:
        if output.get("name") == "stdout" and kept and kept[-1].get("name") == "stdout":
            kept[-1].text += output.text
        elif output.get("name") != "stderr":
            kept.append(output)
    return kept


def _smaller(png: str) -> str:
    """A picture in 256 colours: a third of the bytes."""
    file = BytesIO()
    Image.open(BytesIO(b64decode(png))).convert("RGB").quantize(256).save(file, "PNG", optimize=True)
    return b64encode(file.getvalue()).decode()
