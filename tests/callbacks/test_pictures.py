from pathlib import Path

import pytest
import torch
from lightning.pytorch import Trainer
from PIL import Image

from tests.datamodules.toy import ToyDataModule
from tests.test_models import loader
from tests.zoo import MODELS, SHAPE
from vaezoo.callbacks import SaveLabelTraversals, SavePictures
from vaezoo.callbacks.pictures import _rows
from vaezoo.models import LaRVAE
from vaezoo.networks import DenseNetwork


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


def test_label_traversals_stand_below_the_true_images(tmp_path: Path) -> None:
    data = ToyDataModule(labels=4, batch_size=4, label_form="rank")
    model = LaRVAE(data.image_shape, data.label_size, 1, network=DenseNetwork((8,), (8,)))
    callback = SaveLabelTraversals(steps=3)
    fit = Trainer(
        default_root_dir=tmp_path,
        max_steps=1,
        accelerator="cpu",
        callbacks=[callback],
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    fit.fit(model, data)
    batch = callback._batch
    assert batch is not None
    model.eval()
    picture = callback.draw(fit, model, batch)["label_traversals"]
    _, height, width = data.image_shape
    assert picture.shape[1:] == (2 * data.label_size * (height + 2) + 2, 4 * (width + 2) + 2)
    k = 1  # the second label's rows: truth, then what the model makes of the same labels
    labels = batch.y.repeat(3, 1)
    labels[:, k] = torch.tensor([0.0, 0.5, 1.0])
    truth = data.images_of(labels)
    assert truth is not None
    for row, expected in ((2 * k, truth), (2 * k + 1, model.generate(labels))):
        for column, image in enumerate([batch.x[0], *expected]):
            top, left = 2 + row * (height + 2), 2 + column * (width + 2)
            found = picture[:, top : top + height, left : left + width]
            torch.testing.assert_close(found, image.expand_as(found))
    assert (Path(str(fit.log_dir)) / "pictures" / "label_traversals.png").is_file()


def test_shorter_strips_end_in_white() -> None:
    grid = _rows([torch.zeros(1, 3, 1, 4, 4), torch.zeros(1, 2, 1, 4, 4)])
    assert grid[:, 8:12, 14:18].min() == 1
    assert grid[:, 8:12, 8:12].max() == 0
