from pathlib import Path

import torch
from lightning.pytorch import Trainer
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


def test_scores_are_those_of_the_codes_of_all_images(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = MODELS["VAE"]()
    trainer = Trainer(
        default_root_dir=tmp_path,
        max_steps=2,
        accelerator="cpu",
        callbacks=[EvaluateDisentanglement()],
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    validation = BatchLoader(labelled, Epochs(torch.arange(len(GRID)), 64, shuffle=False, seed=0))
    trainer.fit(model, loader(2), validation)
    everything = labelled(torch.arange(len(GRID)), 0)
    expected = MIG()(model.eval().represent(everything.x), everything.y)["mig_20"]
    torch.testing.assert_close(trainer.callback_metrics["val/mig_20"].double(), expected, rtol=1e-5, atol=1e-6)
    assert "val/sap_dip" in trainer.callback_metrics
