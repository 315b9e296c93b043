"""The site hangs together: every page is listed, every link leads somewhere, every public name is in the reference."""

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import vaezoo
from tests.helpers.pages import DOCS, FENCE, NOTEBOOKS, PAGES, SITE, documented, prose, resolved
from tests.helpers.paths import ROOT

ROOMS = ("callbacks", "evaluation", "metrics", "metrics.functional", "models", "pictures", "regularizers", "report")
LINK = re.compile(r"(?<!`)!?\[[^]]*]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


def listed(page: Path) -> Iterator[Path]:
    """The pages that a page's tables of contents name."""
    for _, kind, content in FENCE.findall(page.read_text()):
        if kind.strip() == "{toctree}":
            for line in content.splitlines():
                if line and not line.startswith(":"):
                    target = page.parent / line
                    yield target.with_suffix(".ipynb" if target.with_suffix(".ipynb") in NOTEBOOKS else ".md")


def test_every_page_is_in_a_table_of_contents_once() -> None:
    named = [path for page in SITE for path in listed(page)]
    assert sorted(named) == sorted({*SITE, *NOTEBOOKS} - {DOCS / "index.md"})


@cache
def headings(page: Path) -> set[str]:
    """What a link to a page may name after #, as GitHub and MyST spell its headings."""
    found = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@cache
def labels() -> set[str]:
    """MyST's own names of places, `(name)=`, which a link of any page finds."""
    return {name for page in SITE for name in re.findall(r"^\(([\w-]+)\)=$", prose(page), re.MULTILINE)}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in ("".join(groups) for groups in LINK.findall(prose(page))):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in headings(target) | (set() if name else labels()), f"{page.name}: {link}"
    for _, kind, content in FENCE.findall(page.read_text()):
        if match := re.match(r"\{(?:image|figure|include|literalinclude)\} (\S+)", kind):
            assert (page.parent / match[1]).is_file(), f"{page.name}: {content}"


def public() -> Iterator[tuple[str, object]]:
    """Every public name, and what it stands for."""
    modules = [vaezoo, *(importlib.import_module(f"vaezoo.{room}") for room in ROOMS)]
    for module in [*modules, importlib.import_module("datamodules")]:
        for name in module.__all__:
            if not isinstance(getattr(module, name), ModuleType) and not name.startswith("__"):
                yield f"{module.__name__}.{name}", getattr(module, name)
    for name, function in inspect.getmembers(vaezoo.functional, inspect.isfunction):
        if function.__module__ == "vaezoo.functional" and not name.startswith("_"):
            yield f"vaezoo.functional.{name}", function


def test_every_room_with_public_names_is_looked_at() -> None:
    rooms = {path.parent for path in (ROOT / "vaezoo").rglob("__init__.py") if "__all__ = [" in path.read_text()}
    assert rooms == {ROOT.joinpath("vaezoo", *room.split(".")) for room in ROOMS}


def test_every_public_name_is_in_the_reference_once() -> None:
    names = list(documented())
    assert len(names) == len(set(names))
    found = {id(resolved(name)) for name in names}
    assert not [name for name, value in public() if id(value) not in found]
