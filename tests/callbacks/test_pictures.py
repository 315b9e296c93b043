from pathlib import Path

import pytest
import torch
from lightning.pytorch import Trainer
from PIL import Image

from tests.test_models import loader
from tests.zoo import MODELS, SHAPE
from vaezoo.callbacks import SavePictures
from vaezoo.callbacks.pictures import _rows


@pytest.mark.parametrize("validate", [True, False])
def test_pictures_have_a_cell_for_every_image_and_unit(validate: bool, tmp_path: Path) -> None:
    model = MODELS["VAE with discrete latents"]()
    fit = Trainer(
        default_root_dir=tmp_path,
        max_steps=2,
        accelerator="cpu",
        callbacks=[SavePictures(images=4, steps=6)],
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    fit.fit(model, loader(2), loader(1) if validate else None)
    assert fit.log_dir is not None
    cell = SHAPE[1] + 2

    def size(name: str) -> tuple[int, int]:
        with Image.open(Path(str(fit.log_dir)) / "pictures" / f"{name}.png") as picture:
            return (picture.width - 2) // cell, (picture.height - 2) // cell

    assert size("reconstructions") == (4, 2)
    assert size("samples") == (4, 4)
    assert size("traversals_z") == (6, 4)
    assert size("traversals_c") == (3, 2)
    assert model.training


def test_shorter_strips_end_in_white() -> None:
    grid = _rows([torch.zeros(1, 3, 1, 4, 4), torch.zeros(1, 2, 1, 4, 4)])
    assert grid[:, 8:12, 14:18].min() == 1
    assert grid[:, 8:12, 8:12].max() == 0
