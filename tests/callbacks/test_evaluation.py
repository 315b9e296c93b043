import csv
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor
from torch.utils.data import DataLoader

from datamodules.loader import BatchLoader, Epochs
from tests.helpers.toy import ToyDataModule
from tests.helpers.zoo import MODELS, SHAPE, loader
from vaezoo.callbacks import EvaluateDisentanglement
from vaezoo.metrics import (
    MIG,
    SAP,
    ClusterAccuracy,
    FactorVAEScore,
    KLPerUnit,
    PolarError,
    ReconstructionError,
    functional as F,
)
from vaezoo.models.base import VAE
from vaezoo.nn.latents import ConcreteLatent, GaussianLatent
from vaezoo.nn.networks import DenseNetwork
from vaezoo.regularizers import KL
from vaezoo.types import Batch

GRID = torch.cartesian_prod(torch.arange(4), torch.arange(5)).repeat(20, 1)  # 400 rows of two factors


def labelled(ids: Tensor, _: int) -> Batch:
    x = torch.zeros(len(ids), *SHAPE)
    x[:, 0, 0, :2] = GRID[ids].float() / 4
    return Batch(x, GRID[ids].float(), torch.ones(len(ids), dtype=torch.bool))


def trainer(tmp_path: Path, callback: EvaluateDisentanglement, **options: Any) -> Trainer:
    return Trainer(
        accelerator="cpu",
        callbacks=[callback],
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        logger=CSVLogger(tmp_path, "log", "0"),
        **{"max_epochs": 1, **options},
    )


def toy_model() -> VAE:
    """The discrete group comes first: scores must find it nevertheless."""
    torch.manual_seed(0)
    latents = {"c": ConcreteLatent([4]), "z": GaussianLatent(3)}
    network = DenseNetwork((8,), (8,))
    return VAE(ToyDataModule.image_shape, latents, {"kl": KL("z"), "kl_c": KL("c")}, network)


def logged(tmp_path: Path, name: str) -> list[float]:
    rows = csv.DictReader((tmp_path / "log" / "0" / "metrics.csv").read_text().splitlines())
    return [float(row[name]) for row in rows if row.get(name)]


def test_labels_of_a_loader_stand_for_factors_where_there_is_no_datamodule(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = MODELS["VAE"]()
    fit = trainer(tmp_path, EvaluateDisentanglement(images=300))
    validation = BatchLoader(labelled, Epochs(torch.arange(len(GRID)), 64, shuffle=False, seed=0))
    fit.fit(model, loader(2), validation)
    everything = labelled(torch.arange(300), 0)
    expected = MIG()(model.eval().represent(everything.x), everything.y)["mig_20"]
    torch.testing.assert_close(fit.callback_metrics["val/mig_20"].double(), expected, rtol=1e-5, atol=1e-6)
    assert "val/sap_dip" in fit.callback_metrics


@pytest.mark.parametrize("form", ["rank", "index", "onehot"])
def test_factors_of_the_pool_are_indices_whatever_the_labels(form: str, tmp_path: Path) -> None:
    data = ToyDataModule(label_form=form, labels=20)
    metrics = [
        MIG(),
        MIG("adaptive"),
        SAP(),
        FactorVAEScore(votes=200, test_votes=200),
        ClusterAccuracy(),
        KLPerUnit(),
        ReconstructionError(),
    ]
    model = toy_model()
    fit = trainer(tmp_path, EvaluateDisentanglement(metrics, images=60, split="all", seed=4))
    fit.fit(model, datamodule=data)
    chosen = torch.randperm(120, generator=torch.Generator().manual_seed(4))[:60]
    factors = data.factors_of(chosen)
    x = data.pictures.images(chosen).float() * (1 / 255)  # to the bit: votes depend on it
    codes = model.eval().represent(x)[:, [4, 5, 6, 0, 1, 2, 3]].double().numpy()  # z, then c
    expected = {
        **F.mig(codes, factors, discrete=(4,)),
        **F.mig(codes, factors, variant="adaptive", discrete=(4,)),
        **F.sap(codes, factors, categorical=(0,), discrete=(4,)),
        **F.factor_vae_score(codes, factors, votes=200, test_votes=200, discrete=(4,)),
        **F.cluster_accuracy(codes[:, 3:], factors[:, 0]),
        "kl": sum(float(nats.sum()) for nats in model.unit_nats(x).values()),
        "reconstruction_error_squared": float((model.reconstruct(x) - x).square().mean()),
    }
    del expected["factor_vae_reference_seed"]
    found = {name: fit.callback_metrics[f"val/{name}"].item() for name in expected}
    assert found == pytest.approx(expected, abs=1e-4)
    assert not any("seed" in name for name in fit.callback_metrics)


def test_images_are_encoded_once_for_all_scores(tmp_path: Path) -> None:
    model, seen = toy_model(), []
    model.encoder.register_forward_hook(lambda _, given, found: seen.append(len(found)))
    callback = EvaluateDisentanglement([MIG(), SAP(), FactorVAEScore(votes=9, test_votes=9)], images=50, split="train")
    trainer(tmp_path, callback, limit_val_batches=1).validate(model, datamodule=ToyDataModule(), verbose=False)
    assert sum(seen[1:]) == 50  # after the batch of the validation itself


@pytest.mark.parametrize(("every", "count"), [(1, 4), (2, 2), (None, 1)])
def test_scores_come_every_n_epochs_or_at_the_end(every: int | None, count: int, tmp_path: Path) -> None:
    model = toy_model()
    callback = EvaluateDisentanglement(images=100, every_n_epochs=every, split="all")
    fit = trainer(tmp_path, callback, max_epochs=4, num_sanity_val_steps=1)
    fit.fit(model, datamodule=ToyDataModule())
    assert len(logged(tmp_path, "val/mig_20")) == count
    assert logged(tmp_path, "val/mig_20")[-1] == pytest.approx(fit.callback_metrics["val/mig_20"].item(), rel=1e-5)
    assert model.training


def test_what_does_not_fit_says_so(tmp_path: Path) -> None:
    polar = trainer(tmp_path, EvaluateDisentanglement([PolarError()]))
    with pytest.raises(ValueError, match="no factors row and column"):
        polar.validate(toy_model(), datamodule=ToyDataModule(), verbose=False)
    last = trainer(tmp_path, EvaluateDisentanglement(every_n_epochs=None))
    with pytest.raises(ValueError, match="no val images: choose another split"):
        last.fit(toy_model(), datamodule=ToyDataModule(val_size=0))
    with pytest.raises(ValueError, match="every_n_epochs"):
        EvaluateDisentanglement(every_n_epochs=0)


def test_a_model_of_another_kind_is_an_error(tmp_path: Path) -> None:
    class Other(LightningModule):
        def validation_step(self, batch: Tensor) -> None:
            pass

    with pytest.raises(TypeError, match="needs a vaezoo VAE, not a Other"):
        trainer(tmp_path, EvaluateDisentanglement()).validate(Other(), DataLoader(GRID), verbose=False)
