from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor

from datamodules.loader import BatchLoader, Epochs
from tests.test_models import loader
from tests.zoo import MODELS, SHAPE
from vaezoo.callbacks import EvaluateDisentanglement
from vaezoo.metrics import MIG
from vaezoo.types import Batch

GRID = torch.cartesian_prod(torch.arange(4), torch.arange(5)).repeat(20, 1)  # 400 rows of two factors


def labelled(ids: Tensor, _: int) -> Batch:
    x = torch.zeros(len(ids), *SHAPE)
    x[:, 0, 0, :2] = GRID[ids].float() / 4
    return Batch(x, GRID[ids].float(), torch.ones(len(ids), dtype=torch.bool))


def trainer(tmp_path: Path, callback: EvaluateDisentanglement, **options: Any) -> Trainer:
    return Trainer(
        default_root_dir=tmp_path,
        accelerator="cpu",
        callbacks=[callback],
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        logger=CSVLogger(tmp_path, "log", "0"),
        **{"max_steps": 2, **options},
    )


def test_labels_of_a_loader_stand_for_factors_where_there_is_no_datamodule(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = MODELS["VAE"]()
    fit = trainer(tmp_path, EvaluateDisentanglement())
    validation = BatchLoader(labelled, Epochs(torch.arange(len(GRID)), 64, shuffle=False, seed=0))
    fit.fit(model, loader(2), validation)
    everything = labelled(torch.arange(len(GRID)), 0)
    expected = MIG()(model.eval().represent(everything.x), everything.y)["mig_20"]
    torch.testing.assert_close(fit.callback_metrics["val/mig_20"].double(), expected, rtol=1e-5, atol=1e-6)
    assert "val/sap_dip" in fit.callback_metrics
