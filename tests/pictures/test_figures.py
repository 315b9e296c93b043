"""Figures for a paper: PDF and SVG with text and images in them, of a given size, the same file every time."""

import base64
import io
import re
import zlib
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import vaezoo
from tests.helpers.commands import MODELS, NETWORK, SMALL, SmallDataModule
from vaezoo.cli.main import run
from vaezoo.pictures import Picture, curves, grid, heat_maps, matrix, stack
from vaezoo.pictures.figures import Style, inches, painted, rename_rows

pytestmark = pytest.mark.xdist_group("figures")  # one worker makes what all of them read
TIMES = torch.arange(3.0)
PICTURES: dict[str, Picture] = {
    "grid": grid([torch.rand(4, 3, 8, 8)] * 2, ["first row", "second"], list("abcd"), "A title", list("efgh")),
    "curves": curves({"first row": (TIMES, TIMES), "second": (TIMES, 2 * TIMES)}, "A title", "step", "nats"),
    "matrix": matrix(torch.rand(2, 3), ["first row", "second"], list("abc"), "A title"),
    "maps": heat_maps(torch.rand(2, 4, 4), ["first row", "second"], "A title", (0.0, 1.0)),
}


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_has_its_text_as_text_and_the_same_bytes_every_time(name: str, tmp_path: Path) -> None:
    style = Style(("pdf", "svg", "png"), width=3.0, dpi=60)
    first, second = (style.save({"a": PICTURES[name]}, tmp_path / folder) for folder in "ab")
    pdf, svg, png = first
    assert [one.read_bytes() == other.read_bytes() for one, other in zip(first, second, strict=True)] == [True] * 3
    for text in ("first row", "second", "A title"):
        assert f">{text}</text>" in svg.read_text()
    assert "<dc:date>" not in svg.read_text()
    assert b"CreationDate" not in pdf.read_bytes()
    assert b"/FontFile2" in pdf.read_bytes()  # TrueType: text that can be searched and edited
    assert Image.open(png).width == 180
    (box,) = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) ", pdf.read_bytes())
    assert float(box) == pytest.approx(3 * 72)


def test_images_of_a_grid_are_embedded_sharp_and_unchanged(tmp_path: Path) -> None:
    images = torch.rand(3, 3, 8, 8)
    (svg,) = Style(("svg",), width=2.0, dpi=400).save({"a": grid([images])}, tmp_path)
    (data,) = re.findall(r'href="data:image/png;base64,([^"]+)"', svg.read_text())
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))
    own = grid([images]).images.permute(1, 2, 0).mul(255).round().byte().numpy()
    factor = picture.shape[1] // own.shape[1]
    assert picture.shape[1] >= 800  # 2 inches of 400 pixels
    assert np.array_equal(picture, own.repeat(factor, 0).repeat(factor, 1))


def test_titles_wrap_and_long_names_leave_room_for_images() -> None:
    words, one_word = "many words " * 12, "welavae_narrow-full_first-s10-20261119"  # as runs are named
    for width, title in product((1.5, 4.0), (words, one_word)):
        figure = painted(grid([torch.ones(4, 3, 8, 8)], ["a name " * 4], (), title), width, 600)
        drawn = max((text.get_text() for text in figure.texts), key=len)
        assert "".join(drawn.split()) == "".join(title.split())
        assert figure.axes[0].get_position().width >= 0.5
        for text in (*figure.texts, *figure.axes[0].texts):
            box = text.get_window_extent()
            assert box.x0 >= -1
            assert box.x1 <= 600 * width + 1


def test_parts_of_a_stack_keep_their_shape() -> None:
    rows = grid([torch.rand(3, 1, 16, 16)], ["u0"])
    figure = painted(stack([PICTURES["curves"], rows, rows]), 3.0, 50)
    figure.canvas.draw()
    assert figure.get_figheight() == pytest.approx(4.2 * 3 / 7.2 + 2 * rows.height(3.0))
    for axes in figure.axes[1:]:
        box = axes.get_window_extent()
        assert box.width / box.height == pytest.approx(rows.images.shape[2] / rows.images.shape[1], rel=0.02)


def test_rows_are_named_in_order_or_by_their_names() -> None:
    rows = {"a": ["z1  2.00 nats", "z0  0.10 nats"], "b": ["c0"]}
    assert rename_rows(rows, ["z0=scale", "c0=shape"]) == {"a": ["z1  2.00 nats", "scale"], "b": ["shape"]}
    assert rename_rows(rows, ["one", "two"]) == {"a": ["one", "two"], "b": ["c0"]}
    assert rename_rows(rows, []) == rows
    with pytest.raises(ValueError, match="--row_names z7: no row is called so, there are z1, z0, c0"):
        rename_rows(rows, ["z7=scale"])
    with pytest.raises(ValueError, match="3 names, and the figures have 1 or 2 rows"):
        rename_rows(rows, ["one", "two", "three"])


def test_widths_are_inches_or_centimetres() -> None:
    assert [inches(width) for width in ("3.3", "3.3in", "8.5cm")] == [3.3, 3.3, pytest.approx(8.5 / 2.54)]
    for wrong in ("0", "9m", "-1", "nan", "1e9", "cm"):
        with pytest.raises(ValueError, match=r"give 0\.5 to 40 inches"):
            inches(wrong)


def test_a_line_of_one_point_is_a_dot_with_a_note() -> None:
    for count in (1, 2):
        drawn = painted(curves({"z0": (TIMES[:count], TIMES[:count])}, "", "step", "nats"), 3.0, 50)
        (axes,) = drawn.axes
        assert [line.get_marker() for line in axes.lines] == ["o" if count == 1 else ""]
        assert [text.get_text() for text in axes.texts] == ["a single point"] * (count == 1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    options = [
        SMALL,
        NETWORK,
        "--trainer.max_steps=2",
        "--trainer.val_check_interval=2",
        "--trainer.enable_progress_bar=false",
    ]
    options += ["--trainer.callbacks+=SaveUnitNats", "--trainer.callbacks.every_n_steps=1"]
    assert run(["fit", *MODELS["joint"], *options, "--experiment=joint", f"--runs_dir={folder}"]) == 0
    return next(folder.glob("joint/*"))


DRAWN = {
    "reconstructions": {"reconstructions"},
    "samples": {"samples"},
    "class_samples": {"samples_c0"},
    "matrices": {"covariance", "information", "importance"},
    "nats": {"nats_z", "nats_c"},
}


@pytest.mark.parametrize("kind", DRAWN)
def test_what_training_draws_is_drawn_again_from_a_run(kind: str, trained: Path, tmp_path: Path) -> None:
    assert run(["figure", str(trained), kind, "--format", "svg", f"--output={tmp_path}"]) == 0
    assert {file.name for file in tmp_path.iterdir()} == {f"{name}.svg" for name in DRAWN[kind]}


def test_reconstructions_are_those_of_the_best_checkpoint(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--image_indices", "2", "0", f"--output={tmp_path / 'fig.png'}", "--title=false"]
    assert run(["figure", str(trained), "reconstructions", *options, "--row_names", "image=x", "reconstruction=y"]) == 0
    best = trained / "checkpoints" / "best.ckpt"
    assert f"using its best checkpoint, {best}" in capsys.readouterr().out
    model = vaezoo.load(best)
    x = images()[[2, 0]]
    expected = grid([x, model.reconstruct(x)], ["x", "y"]).pixels()
    drawn = torch.from_numpy(np.asarray(Image.open(tmp_path / "fig.png")).copy()).permute(2, 0, 1) / 255
    torch.testing.assert_close(drawn, expected, atol=1 / 255, rtol=0)


def images() -> torch.Tensor:
    """The test images in the order of the command line."""
    data = SmallDataModule()
    data.setup()
    ((batch, _),) = data.evaluation_batches(1000, "test", 0, torch.device("cpu"))
    return batch.x


def test_a_file_is_a_file_and_traverse_draws_the_same(trained: Path, tmp_path: Path) -> None:
    best = str(trained / "checkpoints" / "best.ckpt")
    one, other = tmp_path / "one.pdf", tmp_path / "more" / "other.PDF"
    options = ["--latents", "z", "--steps=3", "--width=8.5cm"]
    assert run(["figure", best, "units", *options, f"--output={one}"]) == 0
    assert run(["traverse", "--ckpt_path", best, *options, f"--output={other}"]) == 0
    assert one.read_bytes() == other.read_bytes()
    assert one.read_bytes().startswith(b"%PDF")
    content = b"".join(zlib.decompress(part) for part in streams(one.read_bytes()))
    assert content.count(b"BT\n") >= 2 + 4 + 1  # two rows, four columns, a title


def streams(pdf: bytes) -> list[bytes]:
    """What is compressed in a file, text among it."""
    parts = re.findall(rb"/Filter /FlateDecode[^>]*>>\nstream\n(.*?)\nendstream", pdf, re.S)
    return [part for part in parts if part[:1] == b"x"]


WRONG = {
    "two": (
        ["units", "--output=fig.pdf"],
        "--output fig.pdf is one file, and there are 2 figures (image0_z, image0_c)",
    ),
    "suffix": (["units", "--output=fig.jpg"], "--output fig.jpg: figures are png, pdf, svg files"),
    "formats": (["units", "--output=fig.pdf", "--format=svg"], "--output fig.pdf is a file, of format pdf"),
    "pixels": (["samples", "--width=40", "--dpi=2400"], "too many pixels"),
    "dpi": (["samples", "--dpi=0"], "--dpi must be 1 to 2400, not 0"),
    "transfers": (["transfers"], "kind transfers needs a PartedVAE"),
    "kind": (["reconstruction"], "did you mean 'reconstructions'?"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_does_not_fit_is_one_line(
    wrong: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options, message = WRONG[wrong]
    assert run(["figure", str(trained), *options]) != 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("vaezoo: error:")]
    assert message in line
    assert not list(tmp_path.iterdir())


def test_nats_of_a_run_that_has_not_measured_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vaezoo.save(vaezoo.BetaVAE((1, 1, 2), network=vaezoo.DenseNetwork((8,), (8,))), tmp_path / "a.ckpt")
    assert run(["figure", str(tmp_path / "a.ckpt"), "nats"]) == 1
    assert "kind nats needs a run with the callback SaveUnitNats" in capsys.readouterr().err
