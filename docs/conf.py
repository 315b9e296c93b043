"""Sphinx settings of the site: `make docs` builds it, with warnings as errors."""

import inspect
import sys
from importlib.metadata import files
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext import autosummary
from sphinx.util.inspect import stringify_signature

import vaezoo
from vaezoo.specs import Specified

sys.path.insert(0, str(Path(__file__).parent))  # for the extension that reads notebooks

project = "vaezoo"
author = "the vaezoo authors"
release = version = vaezoo.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "notebook_pages",
]
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_use_ivar = True  # attributes of a named tuple are members already
default_role = "code"  # docstrings mark names with single backticks
autosummary.WELL_KNOWN_ABBREVIATIONS += ("Alg.", "App.", "Eq.", "Fig.", "Sec.")  # no sentence ends there
python_maximum_signature_line_length = 100
highlight_language = "text"  # blocks that name no language are commands
templates_path = ["_templates"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"vaezoo {release}"
html_show_copyright = False

# MathJax in one file that draws its own letters: formulas need no network, and none is asked for a font.
mathjax_path = "tex-svg.js"
html_static_path = [str(f.locate()) for f in files("sphinx-mathjax-offline") or () if f.name == mathjax_path]
pygments_style = "friendly"
pygments_dark_style = "monokai"


def show_constructor(app: Sphinx, what: str, name: str, obj: Any, *given: Any) -> tuple[str, None] | None:
    """Show the arguments of `__init__`, which `Specified.__new__` hides."""
    if what != "class" or not issubclass(obj, Specified):
        return None
    signature = inspect.signature(obj.__init__)
    own = [parameter for name, parameter in signature.parameters.items() if name != "self"]
    shown = signature.replace(parameters=own, return_annotation=signature.empty)
    return stringify_signature(shown, unqualified_typehints=True), None


def setup(app: Sphinx) -> None:
    """Connect what Sphinx calls while it builds."""
    app.connect("autodoc-process-signature", show_constructor)
