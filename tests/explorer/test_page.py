"""The page's own functions, called as Gradio calls them."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from tests.helpers.zoo import MODELS, a_batch
from vaezoo.explorer.explorer import Explorer
from vaezoo.explorer.images import Images
from vaezoo.explorer.opening import require_gradio

gradio = pytest.importorskip("gradio")


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    torch.manual_seed(0)
    return Explorer({"parted": MODELS["PartedVAE"]()}, Images.of(a_batch(labels=0)))


def test_the_handlers_move_sliders_and_pictures(explorer: Explorer, tmp_path: Path) -> None:
    module = require_gradio()
    page = module.Page(explorer, "title")
    first, second = explorer.image(0), explorer.image(1)
    seen = page.show(0, *first.values)
    assert seen[0] != page.show(0, *second.values)[0]
    n = len(explorer.controls)
    start, _, number, *rest = page.begin(lambda lead, i: explorer.image(i, lead), 0, 1)
    assert (start.values, number, len(rest)) == (second.values, 1, n + 2)
    assert rest[n:] == page.show(0, *second.values)
    moved = page.choose(0, 0, 2, *first.values[1:])
    assert (moved[0].value, len(moved)) == (2, n + 2)
    assert page.donor.value.number == page.donor_number.value == 1  # what a tick takes from before B is chosen
    donor, _, *taken = page.take_image(1, 0, first, ["z", "u"])
    assert (donor.number, taken[n:]) == (1, page.show(0, *second.values))
    assert "data:image/gif" in page.animate(1, *first.values)
    Image.new("L", (4, 4), 255).save(tmp_path / "white.png")
    assert page.take_upload(str(tmp_path / "white.png"), 0, first, ["z"])[0].name == "white.png"
    with pytest.raises(gradio.Error, match="image 99: there are 8"):
        page.begin(lambda lead, i: explorer.image(i, lead), 0, 99)
    with pytest.raises(gradio.Error, match="Choose image B first"):
        page.take(None, 0, first, ["z"])


def test_weak_labels_can_be_chosen_where_there_is_an_image() -> None:
    torch.manual_seed(0)
    found = Explorer({"wela": MODELS["WeLaVAE"]()}, Images.of(a_batch(labels=0)))
    page = require_gradio().Page(found, "title")
    (picker,) = page.weak
    assert picker.interactive
    for start, there in ((found.draw(0), False), (found.image(1), True)):
        *_, changed = page.begin(lambda lead, start=start: start, 0)[:4]
        assert (changed.value, changed.interactive) == ("unknown", there)


def test_the_page_asks_no_other_machine_for_anything(explorer: Explorer) -> None:
    module = require_gradio()
    module.THEME._get_theme_css()
    assert not [url for url in module.THEME._stylesheets if "//" in url]
    assert not module.Page(explorer, "title").blocks.analytics_enabled
    assert "url(" not in module.CSS.read_text()
