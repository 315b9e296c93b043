"""The page in a real browser."""

import base64
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from tests.helpers.chromium import PROGRAM, Page, browser
from tests.helpers.zoo import MODELS, a_batch
from vaezoo.explorer.explorer import Explorer
from vaezoo.explorer.images import Images
from vaezoo.explorer.opening import HOST, launch
from vaezoo.explorer.starts import Values

pytest.importorskip("gradio")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="no browser is installed (Debian: apt-get install chromium)"),
]
LONG = "runs/second_of_a_long_name/20250101-120000/checkpoints/best.ckpt"
PICTURES = "[...document.querySelectorAll('#pictures img')].map(image => image.src).join()"
VALUES = "[...document.querySelectorAll('.units input[type=range]')].map(slider => slider.value).join()"


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    torch.manual_seed(0)
    models = {name: MODELS["PartedVAE"]() for name in ("first", LONG)}
    for model in models.values():
        with torch.no_grad():  # z0 beyond its slider, z1 used, the others not
            model.heads["z"].parameters_of.weight.mul_(0.01)
            model.heads["z"].parameters_of.bias.copy_(torch.tensor([4.0, 1.0, 0, 0, 0, 0, 0, 0]))
    return Explorer(models, Images.of(a_batch(labels=0)))


@pytest.fixture(scope="module")
def served(explorer: Explorer) -> Iterator[str]:
    blocks = launch(explorer, port=None, share=False, open=False, quiet=True, prevent_thread_lock=True)
    yield str(blocks.local_url)
    blocks.close()


@pytest.fixture
def page(served: str, tmp_path: Path) -> Iterator[Page]:
    """The page; a test leaves no error in its console, and nothing is asked of another machine."""
    with browser(tmp_path / "profile") as opened:
        opened.call("Emulation.setDeviceMetricsOverride", width=1400, height=1200, deviceScaleFactor=1, mobile=False)
        opened.open(served)
        opened.wait(
            "document.querySelectorAll('#pictures img').length === 2 && document.querySelector('#z0 input') !== null"
        )
        yield opened
        assert opened.complaints(served) == []


def changed(page: Page, script: str, before: str) -> str:
    page.wait(f"({script}) !== {before!r}", 20)
    after: str = page.run(script)
    return after


def drag(page: Page, unit: str, share: float) -> None:
    """Drag a slider from its middle, without letting it go."""
    page.run(f"document.querySelector('#{unit}').scrollIntoView({{block: 'center'}})")
    box: dict[str, float] = page.run(
        f"document.querySelector('#{unit} input[type=range]').getBoundingClientRect().toJSON()"
    )
    y = box["y"] + box["height"] / 2
    for kind, at in (("mousePressed", 0.5), ("mouseMoved", 0.6), ("mouseMoved", share)):
        where: dict[str, Any] = {"x": box["x"] + at * box["width"], "y": y}
        page.call("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **where)


def click(page: Page, text: str) -> None:
    page.run(f"[...document.querySelectorAll('button')].find(button => button.textContent.includes({text!r})).click()")


def type_number(page: Page, where: str, number: int) -> None:
    box = f"document.querySelector('{where} input[type=number]')"
    page.run(f"{{{box}.value = '{number}'; {box}.dispatchEvent(new Event('input', {{bubbles: true}}))}}")


def unfold(page: Page, title: str, inside: str) -> None:
    click(page, title)
    page.wait(f"document.querySelector({inside!r}) !== null", 20)


def test_the_pictures_follow_a_slider_while_it_is_dragged(page: Page) -> None:
    before = page.run(PICTURES)
    drag(page, "z1", 0.9)
    moved = changed(page, PICTURES, before)
    for now, then in zip(moved.split(",data"), before.split(",data"), strict=True):
        assert now != then
    assert float(page.run("document.querySelector('#z1 input[type=range]').value")) > 2
    click(page, "Back to the start")
    page.wait(f"({PICTURES}) === {before!r}", 20)


def test_a_late_answer_to_a_slider_does_not_outlive_another_start(
    page: Page, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(values: Values) -> Any:
        answered.append(values)
        time.sleep(0.5)
        return decoded(values)

    answered: list[Values] = []
    before, decoded = page.run(PICTURES), explorer.decoded
    monkeypatch.setattr(explorer, "decoded", slow)
    drag(page, "z1", 0.9)
    click(page, "Back to the start")
    page.wait(f"({VALUES}).split(',')[1] < 2", 20)
    while answered:  # until a second passes without one
        answered.clear()
        time.sleep(1)
    page.wait(f"({PICTURES}) === {before!r}", 20)


@pytest.mark.parametrize("width", [400, 900, 1300])
def test_pictures_are_side_by_side_and_nothing_is_cut_off(page: Page, width: int) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
    unfold(page, "Transfer from another image", "#transfer input")
    unfold(page, "Save a walk as a GIF", "#walk button.sm")
    page.wait("document.querySelectorAll('#pictures figure').length === 2", 20)
    assert page.run("document.documentElement.scrollWidth") <= width
    boxes = page.run("[...document.querySelectorAll('#pictures figure')].map(f => f.getBoundingClientRect().toJSON())")
    first, second = boxes
    assert first["top"] == second["top"]
    assert (first["left"] >= 0, first["right"] <= second["left"], second["right"] <= width) == (True, True, True)
    assert first["width"] >= 120
    texts = ", ".join(f"#explorer {kind}" for kind in ("figcaption", "label", ".label", "button.sm"))
    every = f"[...document.querySelectorAll({texts!r})]"
    assert page.run(f"{every}.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.outerHTML)") == []


def test_units_that_carry_nothing_are_folded_away_and_can_be_moved(page: Page) -> None:
    assert page.run("document.querySelector('#z2')") is None
    unfold(page, "z: 2 unused", "#z2 input[type=range]")
    before = page.run(PICTURES)
    drag(page, "z2", 0.9)
    changed(page, PICTURES, before)


def test_a_code_beyond_a_slider_widens_it(page: Page) -> None:
    most = "Number(document.querySelector('#z0 input[type=range]').max)"
    assert page.run(most) > 3.5
    click(page, "Draw from the prior")
    page.wait(f"{most} < 3.6", 20)
    type_number(page, "#starts", 1)
    page.wait(f"{most} > 3.5 && Number(document.querySelector('#z0 input[type=range]').value) > 3.5", 20)
    before = page.run(PICTURES)
    drag(page, "z1", 0.1)
    changed(page, PICTURES, before)


def test_classes_starts_transfers_and_gifs_answer(page: Page, tmp_path: Path) -> None:
    pictures, values = page.run(PICTURES), page.run(VALUES)
    page.run("[...document.querySelectorAll('#c0 input')].find(choice => !choice.checked).click()")
    pictures, values = changed(page, PICTURES, pictures), changed(page, VALUES, values)  # u has moved
    for text in ("Random image", "Draw from the prior", "Middle of the prior", "Draw from the prior"):
        click(page, text)
        if text != "Random image":  # which may be the same
            pictures = changed(page, PICTURES, pictures)
    Image.new("RGB", (50, 30), (200, 10, 10)).save(tmp_path / "own.png")
    node = page.call("Runtime.evaluate", expression="document.querySelector('#starts input[type=file]')")
    page.call("DOM.setFileInputFiles", files=[str(tmp_path / "own.png")], objectId=node["result"]["objectId"])
    page.wait("document.querySelector('#start').textContent.includes('own.png')", 20)
    pictures = page.run(PICTURES)
    unfold(page, "Transfer from another image", "#transfer input[type=number]")
    type_number(page, "#transfer", 3)
    page.wait("document.querySelector('#transfer').textContent.includes('given image 3')", 20)
    page.run("document.querySelectorAll('#transfer input[type=checkbox]').forEach(box => box.click())")
    changed(page, PICTURES, pictures)
    unfold(page, "Save a walk as a GIF", "#walk button.sm")
    click(page, "Make GIF")
    page.wait("document.querySelector('#walk img')?.src.startsWith('data:image/gif')", 20)
    assert base64.b64decode(page.run("document.querySelector('#walk img').src").partition(",")[2])[:4] == b"GIF8"


def test_the_page_listens_on_this_machine_alone(served: str) -> None:
    assert served.startswith(f"http://{HOST}:")
    port = int(served.rstrip("/").rpartition(":")[2])
    with socket.socket() as other:
        other.settimeout(2)
        assert other.connect_ex(("127.0.0.2", port)) != 0  # an address of this machine that is not the page's
