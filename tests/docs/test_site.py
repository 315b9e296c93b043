"""The built site needs no network: scripts, styles and fonts are its own, formulas too."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.chromium import PROGRAM, browser
from tests.helpers.paths import ROOT

OUTSIDE = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"'](?:https?:)?//[^>]*>")
STYLE = re.compile(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^;)]*")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    built = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "-b", "html"]
    command = [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(built)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return built


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 100
    assert not {(page.name, found) for page in pages for found in OUTSIDE.findall(page.read_text())}
    assert not {(file.name, found) for file in site.rglob("*.css") for found in STYLE.findall(file.read_text())}


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here")
def test_formulas_are_drawn_without_a_network(site: Path, tmp_path: Path) -> None:
    with browser(tmp_path) as page:
        page.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
        page.open(site / "models" / "larvae.html")
        page.wait("document.querySelectorAll('div.math mjx-container > svg').length === 2")
        assert page.run("document.querySelectorAll('div.math').length") == 2
        assert page.complaints() == []


def test_the_site_brings_its_own_mathjax() -> None:
    settings: dict[str, object] = {"__file__": str(ROOT / "docs" / "conf.py")}
    exec((ROOT / "docs" / "conf.py").read_text(), settings)
    (script,) = settings["html_static_path"]  # type: ignore[misc]
    assert Path(script).name == settings["mathjax_path"]
    assert Path(script).is_file()
