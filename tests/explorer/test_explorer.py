"""What the page does, without the page: controls, codes, starts, transfers, neighbours and files."""

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor

from datamodules import BlobsDataModule, DSpritesDataModule
from tests.helpers.zoo import MODELS, SHAPE, Make, a_batch, models
from vaezoo.explorer.controls import codes_of, values_of
from vaezoo.explorer.drawing import gif, neighbours_html, pictures_html, start_html, walk_html
from vaezoo.explorer.explorer import Explorer
from vaezoo.explorer.images import Images
from vaezoo.models import LaRVAE, PartedVAE, WeLaVAE
from vaezoo.nn.networks import DenseNetwork

NETWORK = DenseNetwork((16,), (16,))
ROUNDED = 5e-3  # what sliders leave out of a value


def explorer(name: str, n: int = 8) -> Explorer:
    torch.manual_seed(0)
    model = MODELS[name]()
    return Explorer({name: model}, Images.of(a_batch(n, labels=0)))


def picture(found: Explorer, values: tuple[float, ...]) -> Tensor:
    return found.decoded(values)[0][0]


@models
def test_the_first_picture_is_the_reconstruction_of_the_image(make: Make) -> None:
    torch.manual_seed(0)
    model, batch = make(), a_batch(labels=0)
    found = Explorer({"model": model}, Images.of(batch))
    start = found.image(3)
    assert start.image is not None
    torch.testing.assert_close(start.image, batch.x[3:4])
    expected = model.reconstruct(batch.x[3:4])[0]
    torch.testing.assert_close(picture(found, start.values), expected, atol=1e-2, rtol=0)
    codes = codes_of(found.controls, start.values, model.latents)
    assert values_of(found.controls, codes, model.latents) == start.values


@models
def test_every_unit_that_moves_a_picture_has_one_control_ranked_by_its_nats(make: Make) -> None:
    model, batch = make().eval(), a_batch(300, labels=0)  # more than a batch
    controls = Explorer({"model": model}, Images.of(batch)).controls
    expected = {(name, k) for name in model.walkable() for k in range(model.latents[name].units)}
    assert len(controls) == len(expected)
    assert {(control.latent, control.number) for control in controls} == expected
    nats = model.unit_nats(batch.x, batch.y)
    for control in controls:
        assert control.nats == pytest.approx((float(nats[control.latent][control.number]),), abs=1e-5)
    for latent in model.walkable():
        ranked = [control.nats[0] for control in controls if control.latent == latent]
        assert ranked == sorted(ranked, reverse=True)
    kinds = [bool(control.classes) for control in controls]
    assert kinds == sorted(kinds, reverse=True)  # classes first


def test_a_unit_is_unused_where_no_model_puts_nats_into_it() -> None:
    model, other, batch = (MODELS["BetaVAE"]().eval() for _ in range(2)), MODELS["BetaVAE"]().eval(), a_batch(labels=0)
    first, second = model
    for one in (first, second, other):
        with torch.no_grad():
            one.heads["z"].parameters_of.weight.zero_()
            one.heads["z"].parameters_of.bias.zero_()
    with torch.no_grad():
        first.heads["z"].parameters_of.bias[2] = 2.0  # KL of a mean of 2 is 2 nats
        second.heads["z"].parameters_of.bias[1] = 0.3  # 0.045 nats: too few
        second.heads["z"].parameters_of.bias[3] = 0.4  # 0.08 nats
    controls = Explorer({"first": first, "second": second}, Images.of(batch)).controls
    assert [control.name for control in controls if control.is_used] == ["z2", "z3"]
    assert controls[0].text == "z2 · 2.00 | 0.00 nats"
    assert all(control.is_used for control in Explorer({"first": first}).controls)  # nothing is known without data


@pytest.mark.parametrize("name", ["JointVAE", "PartedVAE", "PartedVAE of two variables"])
def test_a_class_is_chosen_as_traversals_choose_it(name: str) -> None:
    found = explorer(name)
    model, start = found.models[0], found.image(1)
    for i, control in enumerate(found.controls):
        if control.classes:
            walked = model.traverse(start.image, "c", [control.number])[0][0]
            for k in range(control.classes):
                values = found.chosen((*start.values[:i], k, *start.values[i + 1 :]), i)
                assert values[i] == k
                torch.testing.assert_close(picture(found, values), walked[k], atol=1e-2, rtol=0)
            torch.testing.assert_close(found.walk(start.values, i)[0], walked, atol=1e-2, rtol=0)


def test_a_transfer_takes_groups_of_the_code_from_the_other_image() -> None:
    found = explorer("PartedVAE")
    model, a, b = found.models[0], found.image(1), found.image(2)
    assert isinstance(model, PartedVAE)
    assert found.parts == {"z": "z", "u": "u"}
    assert a.image is not None
    assert b.image is not None
    expected = model.transfer(a.image, b.image)[0, 0]
    torch.testing.assert_close(
        picture(found, found.transferred(a.values, b.values, ["z"])), expected, atol=1e-2, rtol=0
    )
    other = ((a.values[0] + 1) % 3, *b.values[1:])  # of another class
    assert found.controls[0].name == "c0"
    assert found.transferred(a.values, other, ["u"])[0] == other[0]  # classes go with u
    assert found.transferred(a.values, other, ["z"])[0] == a.values[0]
    assert found.transferred(a.values, other, []) == a.values
    assert found.transferred(a.values, other, ["z", "u"]) == other


def test_a_model_of_one_group_transfers_units() -> None:
    found = explorer("BetaVAE")
    a, b = found.image(0).values, found.image(1).values
    assert sorted(found.parts) == ["z0", "z1", "z2", "z3"]
    taken = found.transferred(a, b, [found.controls[2].name])
    assert taken == (*a[:2], b[2], a[3])


def test_a_training_image_is_nearest_to_its_own_code_and_tells_its_factors() -> None:
    torch.manual_seed(0)
    data = DSpritesDataModule(source="render", val_size=0, test_size=0)
    data.prepare_data()
    data.setup(None)
    images = Images.of(data, 20)
    assert images.split == "train"
    model = LaRVAE((1, 64, 64), 5, 1, network=NETWORK)
    found = Explorer({"larvae": model}, images)
    start, nearest = found.image(7), found.nearest(found.image(7).values)
    assert [near.distance for near in nearest] == sorted(near.distance for near in nearest)
    assert nearest[0].distance < ROUNDED * 6**0.5
    assert start.image is not None
    torch.testing.assert_close(nearest[0].image, start.image[0])
    assert nearest[0].factors == start.factors
    assert list(nearest[0].factors) == ["shape", "scale", "orientation", "x", "y"]
    labels = {control.title: control for control in found.controls if control.latent == "y"}
    assert set(labels) == {"shape", "scale", "orientation", "x", "y"}
    assert all(control.span == (0, 1) and control.is_label for control in labels.values())
    assert start.name == "training image 7"
    assert set(found.parts.values()) == {*labels, "z"}, "labels are transferred one by one"
    other = found.image(8).values
    scale = found.controls.index(labels["scale"])
    taken = found.transferred(start.values, other, [labels["scale"].name])
    assert taken == (*start.values[:scale], other[scale], *start.values[scale + 1 :])
    assert "orientation <b>" in neighbours_html(nearest)


@pytest.mark.parametrize("options", [{"label_loss": "bce", "tau": 0.0}, {"label_range": (-2.0, 2.0)}])
def test_what_is_not_a_plain_label_moves_as_a_latent_does(options: dict[str, Any]) -> None:
    found = Explorer({"larvae": LaRVAE(SHAPE, 3, 1, network=NETWORK, **options)}, Images.of(a_batch(4, labels=0)))
    assert not any(control.is_label for control in found.controls)
    assert {control.span for control in found.controls} == {(-3, 3)}


def test_weak_labels_are_those_of_the_image_until_others_are_chosen() -> None:
    torch.manual_seed(0)
    data = BlobsDataModule(bins=3, val_size=10, test_size=10, samples=1)
    data.setup(None)
    model = WeLaVAE((1, 64, 64), [3, 3], dataset_size=10, network=NETWORK)
    found = Explorer({"wela": model}, Images.of(data, 5))
    assert found.weak_labels == {"angle": 3, "distance": 3}
    start = found.image(0)
    batch, _ = next(data.evaluation_batches(5, "test", 0, torch.device("cpu")))
    own = [int(part.argmax()) for part in batch.y[0].split(3)]
    assert found.weak_classes(start) == own
    expected = model.encode(batch.x[:1], batch.y[:1])["z"].mode()[0]
    torch.testing.assert_close(_in_order(found, start.values), expected, atol=ROUNDED, rtol=0)
    other = found.relabelled(start, [None, 2])
    expected = model.encode(batch.x[:1], torch.tensor([[torch.nan, 2.0]]))["z"].mode()[0]
    torch.testing.assert_close(_in_order(found, other.values), expected, atol=ROUNDED, rtol=0)
    assert found.weak_classes(other) == [None, 2]
    html = pictures_html(found, start.values)
    assert html.count('class="label"') == 2
    assert "angle: " in html


def _in_order(found: Explorer, values: tuple[float, ...]) -> Tensor:
    pairs = sorted(zip((control.number for control in found.controls), values, strict=True))
    return torch.tensor([value for _, value in pairs])


def test_draws_follow_their_seed_and_leave_the_noise_of_others_alone() -> None:
    found = explorer("PartedVAE")
    before = torch.get_rng_state()
    assert found.draw(3) == found.draw(3) != found.draw(4)
    assert torch.equal(torch.get_rng_state(), before)
    middle = dict(zip((control.name for control in found.controls), found.middle().values, strict=True))
    assert (middle["z0"], middle["c0"]) == (0, 0)
    mean = found.models[0].heads["u"].components()[0].mean[0]
    assert [middle["u0"], middle["u1"]] == pytest.approx(mean.tolist(), abs=ROUNDED)


def test_an_upload_is_greyed_and_resized_and_anything_else_is_one_line(tmp_path: Path) -> None:
    found = explorer("WeLaVAE")
    Image.new("RGB", (40, 30), (255, 0, 0)).save(tmp_path / "red.png")
    start = found.upload(tmp_path / "red.png")
    assert start.image is not None
    assert start.image.shape == (1, *SHAPE)
    torch.testing.assert_close(start.image, torch.full((1, *SHAPE), 76 / 255))  # 0.299 of 255
    assert found.weak_classes(start) == [None]
    (tmp_path / "text.png").write_text("no picture")
    with pytest.raises(ValueError, match=r"text\.png is no picture that can be read: give a PNG, JPEG"):
        found.upload(tmp_path / "text.png")
    with pytest.raises(ValueError, match="image 8: there are 8, 0 to 7"):
        found.image(8)


def test_models_whose_codes_do_not_fit_are_refused_by_name() -> None:
    beta, joint = MODELS["BetaVAE"](), MODELS["JointVAE"]()
    with pytest.raises(ValueError, match=r"b has latents z \(4\), c \(3 × 2 classes\) .* a has latents z \(4\) and"):
        Explorer({"a": beta, "b": joint})
    assert len(Explorer({"a": beta, "b": MODELS["TCVAE"]()}).decoded((0.0,) * 4)) == 2


def test_a_gif_goes_there_and_back_for_all_models(tmp_path: Path) -> None:
    torch.manual_seed(0)
    found = Explorer({"a": MODELS["BetaVAE"](), "b": MODELS["TCVAE"]()})
    walks = found.walk((0.0, 1.0, 0.0, 0.0), 2, steps=4)
    assert walks.shape == (2, 4, *SHAPE)
    torch.testing.assert_close(walks[1, 3], found.decoded((0.0, 1.0, 3.0, 0.0))[1][0])
    with Image.open(io.BytesIO(gif(walks, found.names))) as animation:
        assert (animation.format, getattr(animation, "n_frames", 1)) == ("GIF", 6)
        assert animation.width > 2 * 192
    assert 'download="z2.gif"' in walk_html(found, (0.0,) * 4, 2)


def test_names_from_anyone_are_escaped(tmp_path: Path) -> None:
    found = Explorer({"<script>x</script>": MODELS["BetaVAE"]()})
    Image.new("L", (4, 4)).save(tmp_path / "<b>.png")
    shown = pictures_html(found, (0.0,) * 4) + start_html(found.upload(tmp_path / "<b>.png"))
    assert "<script" not in shown
    assert "<b>.png" not in shown


def test_a_slider_reaches_as_far_as_its_value() -> None:
    control = Explorer({"a": MODELS["BetaVAE"]()}).controls[0]
    assert control.reach(0.5) == (-3, 3)
    assert control.reach(4.21) == (-3, 4.3)
    assert control.reach(-3.01) == (-3.1, 3)


def test_data_of_another_kind_is_one_line() -> None:
    with pytest.raises(TypeError, match="data must be a datamodule that is set up, or images"):
        Images.of("photos")
    with pytest.raises(ValueError, match="data holds no images"):
        Images.of(torch.rand(0, *SHAPE))
