import math
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Trainer
from torch import Tensor

from tests.helpers.toy import ToyDataModule
from tests.helpers.zoo import MODELS, loader, trainer
from vaezoo.models import LaRVAE
from vaezoo.models.base import VAE
from vaezoo.nn.networks import DenseNetwork
from vaezoo.pictures import (
    Pictures,
    SaveLabelTraversals,
    SavePictures,
    SaveUnitNats,
    labels as label_pictures,
    matrices as matrix_pictures,
)
from vaezoo.types import Batch


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
    folder = Path(str(fit.log_dir)) / "pictures"
    names = {"reconstructions", "samples", "traversals_z", "traversals_c", "traversals_z_prior", "traversals_c_prior"}
    assert {file.stem for file in folder.iterdir()} == names
    assert model.training


@pytest.mark.parametrize(("steps", "expected"), [(2, [2]), (3, [2, 3])])
def test_the_end_is_drawn_once(steps: int, expected: list[int], tmp_path: Path) -> None:
    drawn = []

    class Drawn(Pictures):
        def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> dict[str, Tensor]:
            drawn.append(trainer.global_step)
            return {}

    options = {"callbacks": [Drawn()], "enable_checkpointing": False, "num_sanity_val_steps": 0}
    trainer(tmp_path, steps, **options, val_check_interval=2).fit(MODELS["VAE"](), loader(3), loader(1))
    assert drawn == expected


def test_label_traversals_stand_below_the_true_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    rows: list[Tensor] = []
    monkeypatch.setattr(label_pictures, "grid", lambda images, *_: rows.extend(images) or torch.zeros(3, 4, 4))
    callback.draw(fit, model, batch)
    k = 1  # the second label's rows: truth, then what the model makes of the same labels
    labels = batch.y.repeat(3, 1)
    labels[:, k] = torch.tensor([0.0, 0.5, 1.0])
    truth = data.images_of(labels)
    assert truth is not None
    torch.testing.assert_close(rows[2 * k], torch.cat([batch.x, truth]))
    nuisance = model.encode(batch.x)["z"].mode().repeat(3, 1)
    torch.testing.assert_close(rows[2 * k + 1], torch.cat([batch.x, model.generate(labels, nuisance)]))
    assert not torch.allclose(model.generate(labels, nuisance), model.generate(labels))
    assert (Path(str(fit.log_dir)) / "pictures" / "label_traversals.png").is_file()


class Broken(Pictures):
    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> dict[str, Tensor]:
        raise RuntimeError("odd shape")


def test_a_picture_that_fails_warns_once_and_training_goes_on(tmp_path: Path) -> None:
    model = MODELS["VAE"]()
    fit = Trainer(
        default_root_dir=tmp_path,
        max_steps=4,
        val_check_interval=1,
        accelerator="cpu",
        callbacks=[Broken()],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    with pytest.warns(UserWarning, match="Broken could not draw: RuntimeError: odd shape") as caught:
        fit.fit(model, loader(4), loader(1))
    assert model.step == 4
    assert sum("could not draw" in str(warning.message) for warning in caught) == 1


def test_matrices_show_which_latent_tells_which_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: dict[str, tuple[Tensor, list[str], list[str]]] = {}

    def keep(table: Tensor, rows: list[str], columns: list[str], title: str, signed: bool = False) -> Tensor:
        tables[title.splitlines()[1].split()[0]] = table, list(rows), list(columns)
        return torch.zeros(3, 4, 4)

    monkeypatch.setattr(matrix_pictures, "matrix", keep)
    factors = torch.cartesian_prod(torch.arange(10), torch.arange(2), torch.tensor([7])).repeat(20, 1)
    noise = torch.randn(len(factors), 1, generator=torch.Generator().manual_seed(0))
    hot = torch.nn.functional.one_hot(factors[:, 1], 2).float()
    codes = torch.cat([factors[:, :1].float(), noise, hot], dim=1)
    matrix_pictures.matrices(codes, factors, ("a", "b", "still"), (2,), "title")
    table, rows, columns = tables["mutual"]
    assert (rows, columns) == (["z0", "z1", "c0"], ["a", "b"])  # what never varies is left out
    torch.testing.assert_close(table[0], torch.tensor([1.0, 0.0]).double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(table[2], torch.tensor([0.0, 1.0]).double(), atol=1e-6, rtol=0)
    assert tables["importance"][0].argmax(0).tolist() == [0, 2]
    covariance, names, _ = tables["covariance"]
    assert names == ["z0", "z1", "c0=0", "c0=1"]
    assert covariance[0, 0].item() == pytest.approx(8.25, rel=1e-5)  # of 0 to 9
    assert covariance[2, 3].item() == pytest.approx(-0.25, rel=1e-5)


def test_nats_are_measured_in_training_and_go_on_after_a_resume(tmp_path: Path) -> None:
    model, nats = MODELS["JointVAE"](), SaveUnitNats(images=4, every_n_steps=2)
    fit = trainer(tmp_path, 5, callbacks=[nats], enable_checkpointing=False)
    fit.fit(model, loader(5))
    steps, capacity, *units = torch.tensor(nats._history["z"]).T
    assert steps.tolist() == [2, 4, 5]
    torch.testing.assert_close(capacity, 5.0 * steps / 10)  # of max_nats in ten steps
    kept = nats._batch
    assert kept is not None
    torch.testing.assert_close(torch.stack(units)[:, -1], model.unit_nats(kept.x)["z"])
    cap = torch.tensor(nats._history["c"])[:, 1]
    assert cap.max().item() == pytest.approx(math.log(6))  # of three and two classes
    resumed = SaveUnitNats(images=4, every_n_steps=2)
    resumed.load_state_dict(nats.state_dict())
    assert resumed._history == nats._history
