"""Run the notebooks of the site and save them with their outputs: `python -m tests.notebooks [NAME …]`."""

import sys
import tempfile
from pathlib import Path

import nbformat

from tests.helpers.notebooks import NOTEBOOKS, cleaned, execute, read_notebook


def main(names: list[str]) -> None:
    """Run those whose names begin so, or all."""
    for path in NOTEBOOKS:
        if not names or path.name.startswith(tuple(names)):
            print(path.name, flush=True)
            with tempfile.TemporaryDirectory() as folder:
                notebook = execute(read_notebook(path), Path(folder))
            nbformat.write(cleaned(notebook, path.name), path)


if __name__ == "__main__":
    main(sys.argv[1:])
