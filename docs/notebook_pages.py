"""Notebooks as pages of the site, with the outputs that they were saved with: nothing is executed."""

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx

PROJECT = Path(__file__).parents[1]
REPOSITORY = re.findall(r'^Repository = "(.*)"$', (PROJECT / "pyproject.toml").read_text(), re.MULTILINE)[0]
"""Public address of the project: the one place that says it is pyproject.toml."""
PAGES = f"{REPOSITORY}/blob/main/docs/"
"""What links in notebooks begin with, as Colab knows no files beside them."""


def badge(name: str) -> str:
    """The first cell of a notebook, by the name of its file: opens it in Colab."""
    notebook = f"{PAGES}notebooks/{name}".removeprefix("https://github.com/")
    image = "https://colab.research.google.com/assets/colab-badge.svg"
    return f"[![Open in Colab]({image})](https://colab.research.google.com/github/{notebook})"


def as_markdown(notebook: dict[str, Any]) -> str:
    """A notebook as a page in MyST's Markdown."""
    return "\n\n".join(part for cell in notebook["cells"] for part in _parts(cell))


def _parts(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        # A page needs no network: the badge is a plain link, and pages link to each other.
        words = re.sub(r"!\[([^]]*)\]\(https?://[^)]*\)", r"\1", source)
        return [words.replace(PAGES, "../")]
    language = "text" if "\\\n" in source else "ipython3"  # which knows no command of several lines
    return [_fenced(language, source), *(_shown(output) for output in cell["outputs"])]


def _shown(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        return f"![picture](data:image/png;base64,{''.join(data['image/png'].split())})"
    return _fenced("text", "".join(output.get("text") or data["text/plain"]))


def _fenced(language: str, text: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````"


class NotebookParser(MystParser):
    """Reads a notebook as the Markdown that it stands for."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse the text of a notebook's file."""
        super().parse(as_markdown(json.loads(inputstring)), document)


def setup(app: Sphinx) -> dict[str, bool]:
    """Let Sphinx read notebooks."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
