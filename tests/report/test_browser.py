"""The page in a real browser."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.chromium import PROGRAM, Page, browser
from vaezoo.cli.main import run

pytestmark = [
    pytest.mark.xdist_group("report"),
    pytest.mark.skipif(PROGRAM is None, reason="no browser is installed (Debian: apt-get install chromium)"),
]
ROWS = "[...document.querySelectorAll('#runs tbody tr')].map(row => row.querySelector('a').title.split('/')[0])"


@pytest.fixture(scope="module")
def page(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page of all runs; a test leaves nothing in its console."""
    folder = tmp_path_factory.mktemp("browser")
    order = [next(runs.glob(f"{name}/*")) for name in ("joint", "beta", "stranger")]
    assert run(["report", *map(str, order), "-o", str(folder / "report.html")]) == 0
    with browser(folder / "profile") as opened:
        opened.call("Emulation.setDeviceMetricsOverride", width=1366, height=768, deviceScaleFactor=1, mobile=False)
        opened.open(folder / "report.html")
        yield opened


@pytest.fixture(autouse=True)
def _silent(page: Page) -> Iterator[None]:
    yield
    assert page.complaints() == []
    assert page.run("window.hacked") is None


def box(page: Page, selector: str) -> dict[str, float]:
    script = f"document.querySelector({selector!r})"
    page.run(f"{script}.scrollIntoView({{block: 'center'}})")
    found: dict[str, float] = page.run(f"{script}.getBoundingClientRect().toJSON()")
    return found


def shot(page: Page, selector: str) -> bytes:
    found = box(page, selector)
    y = found["y"] + page.run("scrollY")
    clip = {"x": found["x"], "y": y, "width": found["width"], "height": found["height"], "scale": 1}
    return base64.b64decode(page.call("Page.captureScreenshot", clip=clip)["data"])


def click(page: Page, selector: str) -> None:
    found = box(page, selector)
    point = found["x"] + found["width"] / 2, found["y"] + found["height"] / 2
    page.drag(point, point)


@pytest.mark.parametrize("unit", ["z0", "c1"])
def test_a_dragged_slider_changes_its_picture_alone(page: Page, unit: str) -> None:
    card = f".unit[data-unit={unit}]"
    others = f"[...document.querySelectorAll('.unit:not([data-unit={unit}]) output')].map(o => o.textContent).join()"
    before, rest = shot(page, f"{card} .frame"), page.run(others)
    slider = box(page, f"{card} input")
    y = slider["y"] + slider["height"] / 2
    page.drag((slider["x"] + slider["width"] / 2, y), (slider["x"] + slider["width"] - 2, y))
    value = page.run(f"document.querySelector('{card} output').textContent")
    assert value == {"z0": "2.00", "c1": "class 3"}[unit]
    assert page.run(f"document.querySelector('{card} input').getAttribute('aria-valuetext')") == value
    assert shot(page, f"{card} .frame") != before
    assert page.run(others) == rest


def test_a_slider_obeys_the_keyboard_and_another_start_changes_the_picture(page: Page) -> None:
    card = ".unit[data-unit=z1]"
    page.run(f"document.querySelector('{card} input').focus()")
    before = page.run(f"document.querySelector('{card} img').style.transform")
    page.press("ArrowLeft", 37)
    assert page.run(f"document.querySelector('{card} img').style.transform") != before
    picture = f"document.querySelector('{card} img').src"
    first = page.run(picture)
    page.run("{const s = document.querySelector('select'); s.value = '2'; s.dispatchEvent(new Event('change'))}")
    assert page.run(picture) != first


def test_the_table_sorts_by_any_score(page: Page) -> None:
    assert page.run(ROWS) == ["joint", "beta", "stranger"]
    click(page, "#runs button[data-column='val/loss']")
    sorted_ = "document.querySelector('#runs th:has(button[data-column=\"val/loss\"])').ariaSort"
    assert page.run(sorted_) == "ascending"
    ascending = page.run(ROWS)
    assert ascending[-1] == "stranger"  # its loss is 1e9
    page.press("Enter", 13)  # the header keeps the focus
    page.call("Input.dispatchKeyEvent", type="char", text="\r")
    page.wait(f"{sorted_} === 'descending'", 5)
    assert page.run(ROWS) == ascending[::-1]
    click(page, "#runs button[data-column=mig_20]")
    assert page.run(ROWS)[0] == "joint"  # the only one with this score
    assert page.run("document.querySelector('#runs tbody td small').textContent") == "[0.4, 0.6]"


def test_curves_show_values_and_turn_logarithmic(page: Page) -> None:
    chart = "figure[data-term=loss] svg"
    found = box(page, chart)
    page.wait(f"document.querySelectorAll('{chart} path').length >= 4")  # two runs, training and validation
    position: dict[str, Any] = {"x": found["x"] + found["width"] / 2, "y": found["y"] + 50}
    page.call("Input.dispatchMouseEvent", type="mouseMoved", **position)
    page.wait("!document.getElementById('tip').hidden", 5)
    assert "JointVAE" in page.run("document.getElementById('tip').textContent")
    paths = f"[...document.querySelectorAll('{chart} path')].map(path => path.getAttribute('d')).join()"
    before = page.run(paths)
    click(page, "#log")
    assert page.run(paths) != before
    charts = "[...document.querySelectorAll('#charts figure')].filter(figure => !figure.hidden).length"
    every = page.run(charts)
    click(page, "#curve-controls button:last-child")
    assert (page.run(charts), page.run("document.querySelectorAll('#runs input:checked').length")) == (0, 0)
    click(page, "#curve-controls button")
    assert page.run(charts) == every > 5


def test_a_chart_of_one_point_says_so(page: Page) -> None:
    said = "[...document.querySelectorAll('#charts figure')].find(f => f.textContent.includes('onerror'))"
    page.run(f"{said}.scrollIntoView()")
    page.wait(f"{said}.querySelectorAll('circle').length === 1", 5)
    assert "a single point" in page.run(f"{said}.textContent")
    loss = "document.querySelector('figure[data-term=loss]')"
    page.run(f"{loss}.scrollIntoView()")
    assert "a single point" not in page.run(f"{loss}.textContent")


def test_settings_that_differ_are_shown_and_can_be_sorted_by(page: Page) -> None:
    keys = page.run("[...document.querySelectorAll('#settings-table tbody th')].map(cell => cell.textContent)")
    assert "model.init_args.discrete" in keys
    assert "seed_everything" in keys  # the stranger has none
    assert "trainer.max_steps" in keys
    page.run("document.getElementById('columns').open = true")
    labels = page.run("[...document.querySelectorAll('#columns label')].map(label => label.textContent.trim())")
    click(page, f"#columns label:nth-child({labels.index('model.init_args.discrete') + 1}) input")
    click(page, "#runs button[data-column='model.init_args.discrete']")
    click(page, "#runs button[data-column='model.init_args.discrete']")
    assert page.run(ROWS)[0] == "joint"


def test_strangers_names_are_text_and_sections_fill_when_opened(page: Page, beta: Path) -> None:
    pictures = len(list(beta.glob("pictures/*.png"))) + 1  # and the reconstructions
    assert page.run("document.querySelector('#run-1 .units')") is None
    page.run("document.querySelectorAll('details').forEach(section => { section.open = true })")
    page.wait(f"document.querySelectorAll('#run-1 .pictures img').length === {pictures}")
    images = (
        "[...document.images].every(image => image.src.startsWith('data:') && image.complete && image.naturalWidth)"
    )
    page.wait(images)
    assert "onerror" in page.run("document.querySelector('#run-2 summary').textContent")
    handlers = (
        "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes]).filter(a => a.name.startsWith('on'))"
    )
    assert page.run(f"{handlers}.length") == 0
    assert page.run("[...document.links].every(link => link.getAttribute('href').startsWith('#'))")
    assert page.run("document.querySelectorAll('iframe, object, embed, base, form').length") == 0


@pytest.mark.parametrize("width", [360, 1366])
def test_no_text_is_cut_off(page: Page, width: int) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=768, deviceScaleFactor=1, mobile=False)
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    cut = """[...document.querySelectorAll('p, h2, h3, summary, figcaption, li, label')].filter(
        e => e.clientWidth && e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 40))"""
    assert page.run(cut) == []
    outside = """[...document.querySelectorAll('#charts svg text')].filter(t => { const a = t.getBoundingClientRect(),
        b = t.closest('figure').getBoundingClientRect(); return a.left < b.left || a.right > b.right;
        }).map(t => t.textContent)"""
    assert page.run(outside) == []


def test_the_theme_follows_the_system_and_its_button(page: Page) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    for scheme, colour in (("dark", "rgb(21, 24, 29)"), ("light", "rgb(255, 255, 255)")):
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        assert page.run(back) == colour
    click(page, "#theme")
    assert page.run(back) == "rgb(21, 24, 29)"
    assert page.run("document.getElementById('theme').ariaPressed") == "true"


def test_it_prints(page: Page) -> None:
    assert base64.b64decode(page.call("Page.printToPDF")["data"]).startswith(b"%PDF")
