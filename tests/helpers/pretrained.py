"""What every trained model that is shared must pass."""

import json
from pathlib import Path

import pytest
import torch

import vaezoo
from datamodules import ImageDataModule
from vaezoo.models.base import VAE
from vaezoo.runs.data import RunData
from vaezoo.runs.folder import RunFolder
from vaezoo.sharing.scores import again, differing


def require_finite_codes(model: VAE) -> None:
    """Fails where a model is not in evaluation, or gives numbers that are none."""
    images = torch.rand(4, *model.image_shape, generator=torch.Generator().manual_seed(0))
    assert not model.training
    assert model.represent(images).isfinite().all()
    assert all(posterior.mode().isfinite().all() for posterior in model.encode(images).values())
    assert model.reconstruct(images).isfinite().all()


def require_recorded_scores(folder: Path) -> None:
    """Fails where the scores of a model in a folder are not those that it records; skips where its data is absent."""
    kept = json.loads((folder / "config.json").read_text())["scores"]
    try:
        data, _ = RunData(ImageDataModule).of(RunFolder(folder))
    except OSError as error:
        pytest.skip(f"the data is not here: {error}")
    if data.source != kept["source"]:
        pytest.skip(f"it was scored on images from {kept['source']}, and these are from {data.source}")
    wrong = differing(kept, again(vaezoo.load(folder), data, kept))
    assert not wrong, "; ".join(wrong)
