"""`vaezoo traverse` through the command line."""

from pathlib import Path

import pytest
import torch
from PIL import Image
from torchvision.io import read_image

import vaezoo
from tests.helpers.commands import MODELS, NETWORK, SMALL
from vaezoo.cli.main import run
from vaezoo.pictures import grid

pytestmark = pytest.mark.xdist_group("traverse")  # one worker makes what all of them read


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    options = [SMALL, NETWORK, "--trainer.max_steps=2", "--trainer.enable_progress_bar=false"]
    assert run(["fit", *MODELS["joint"], *options, "--experiment=joint", f"--runs_dir={folder}"]) == 0
    return next(folder.glob("joint/*/checkpoints/last.ckpt"))


def test_every_group_has_a_picture_an_animation_and_strips(checkpoint: Path) -> None:
    assert run(["traverse", "--ckpt_path", str(checkpoint), "--image_indices", "0", "3", "--steps=5"]) == 0
    folder = checkpoint.parent.parent / "traversals"
    stems = [f"image{i}_{latent}" for i in (0, 3) for latent in ("z", "c")]
    expected = {f"{stem}{suffix}" for stem in stems for suffix in ("", ".png", ".gif")}
    assert {file.name for file in folder.iterdir()} == expected
    assert {file.name for file in (folder / "image0_z").iterdir()} == {"z0.png", "z1.png"}
    with Image.open(folder / "image3_z.gif") as animation:
        assert getattr(animation, "n_frames", 1) == 8  # there and back
    with Image.open(folder / "image3_c.gif") as animation:
        assert getattr(animation, "n_frames", 1) == 6


def test_chosen_units_and_ranges_are_what_the_model_decodes(checkpoint: Path, tmp_path: Path) -> None:
    options = ["--prior", "--latents", "z", "--units", "1", "--span", "-1", "3", "--steps=3", f"--output={tmp_path}"]
    assert run(["traverse", "--ckpt_path", str(checkpoint), *options]) == 0
    (walk,) = vaezoo.load(checkpoint).traverse(None, "z", [1], 3, (-1.0, 3.0))
    expected = grid([walk[0]], ["z1"], ["-1.0", "1.0", "3.0"]).pixels()
    drawn = read_image(str(tmp_path / "prior_z" / "z1.png")).float() / 255
    torch.testing.assert_close(drawn, expected, atol=1 / 255, rtol=0)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--latents", "w"], "'w' is not one of z, c"),
        (["--units", "7"], "units 0 to 1, not 7"),
        (["--image_indices", "500"], "--image_indices 500"),
    ],
)
def test_what_is_not_there_is_one_line(
    args: list[str], message: str, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["traverse", "--ckpt_path", str(checkpoint), *args]) == 1
    assert message in capsys.readouterr().err
