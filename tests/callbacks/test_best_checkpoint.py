"""Which validation `best.ckpt` is of."""

from pathlib import Path

import pytest
import torch
from lightning.pytorch import Trainer
from torch import Tensor

from tests.helpers.zoo import MODELS, a_batch, in_order
from vaezoo.callbacks import BestCheckpoint
from vaezoo.runs.checkpoint_io import read_checkpoint
from vaezoo.types import Batch


def labelled(seed: int) -> Batch:
    return a_batch(8, seed, observed=8)._replace(labelled=torch.ones(8, dtype=torch.bool))


def fit(name: str, folder: Path, epochs: int, checkpoint: Path | None = None) -> tuple[Trainer, BestCheckpoint]:
    torch.manual_seed(0)
    best = BestCheckpoint()
    trainer = Trainer(
        default_root_dir=folder,
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        callbacks=[best],
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    best.dirpath = str(folder)
    model = MODELS[name]()
    trainer.fit(model, in_order([labelled(0)] * 2), in_order([labelled(1)]), ckpt_path=checkpoint, weights_only=True)
    return trainer, best


@pytest.mark.parametrize(("name", "readers"), [("LaRVAE", ["labels", "replacement"]), ("WeLaVAE", ["labels"])])
def test_models_that_read_labels_are_chosen_without_them(name: str, readers: list[str], tmp_path: Path) -> None:
    trainer, best = fit(name, tmp_path, 2)
    metrics = trainer.callback_metrics
    assert best.monitor == "val/unsupervised"
    assert metrics["val/labels"] > 0
    rest = metrics["val/loss"] - sum((metrics[f"val/{reader}"] for reader in readers), Tensor([0.0]))
    torch.testing.assert_close(metrics["val/unsupervised"], rest.squeeze(), rtol=1e-4, atol=1e-3)
    assert best.best_model_score is not None
    assert best.best_model_score <= metrics["val/unsupervised"]
    assert [path.name for path in tmp_path.glob("*.ckpt")] == ["best.ckpt"]


def test_other_models_are_chosen_by_their_loss(tmp_path: Path) -> None:
    trainer, best = fit("BetaVAE", tmp_path, 1)
    assert best.monitor == "val/loss"
    assert "val/unsupervised" not in trainer.callback_metrics
    assert best.best_model_score == trainer.callback_metrics["val/loss"]


def test_a_resumed_run_keeps_its_best_and_an_older_one_begins_to_choose_anew(tmp_path: Path) -> None:
    fit("LaRVAE", tmp_path, 1)
    path = tmp_path / "best.ckpt"
    content = read_checkpoint(path)
    (key,) = (key for key in content["callbacks"] if key.startswith("BestCheckpoint"))
    assert "val/loss" in key  # as 0.1.0 wrote it
    for monitor in ("val/unsupervised", "val/loss"):
        state = content["callbacks"][key]
        # A score that nothing beats: kept by a run of today, forgotten where it was of another part of the loss.
        state |= {"monitor": monitor, "best_model_score": torch.tensor(-1e9), "best_model_path": str(path)}
        torch.save(content, tmp_path / "start.ckpt")
        _, best = fit("LaRVAE", tmp_path / monitor.replace("/", "_"), 2, tmp_path / "start.ckpt")
        assert best.best_model_score is not None
        assert (best.best_model_score == -1e9) == (monitor == "val/unsupervised")
        assert Path(best.best_model_path).is_file()
