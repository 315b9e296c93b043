"""The encoder in scikit-learn's shape gives what `represent` gives, and says what is wrong with images."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import vaezoo
from tests.helpers.zoo import MODELS, SHAPE, Make, models

BYTES = np.random.default_rng(0).integers(0, 256, (7, *SHAPE), dtype=np.uint8)


def represented(model: vaezoo.VAE, images: Any = BYTES) -> np.ndarray:
    return model.eval().represent(torch.from_numpy(images / 255).float()).numpy()


@models
def test_codes_are_what_represent_gives(make: Make) -> None:
    model = make()
    encoder = vaezoo.Encoder(model)
    codes = encoder.fit(BYTES).transform(BYTES)
    np.testing.assert_allclose(codes, represented(model), atol=1e-6)
    assert codes.dtype == np.float32
    assert list(encoder.get_feature_names_out()) == model.unit_names
    assert len(model.unit_names) == codes.shape[1]


@pytest.mark.parametrize(
    "images",
    [
        torch.from_numpy(BYTES),
        BYTES / 255,
        (BYTES / 255).astype(np.float32),
        (BYTES / 255).astype(">f4"),
        torch.from_numpy(BYTES / 255),
        BYTES[::-1][::-1],
    ],
    ids=["byte tensor", "doubles", "floats", "other byte order", "double tensor", "negative strides"],
)
@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_every_kind_of_images_in_batches_of_any_size(images: Any, batch_size: int) -> None:
    model = MODELS["JointVAE"]()
    encoder = vaezoo.Encoder(model, batch_size)
    np.testing.assert_allclose(encoder.transform(images), represented(model), atol=1e-6)
    assert encoder.transform(images[:0]).shape == (0, 9)
    np.testing.assert_allclose(encoder.transform(images[:1]), represented(model)[:1], atol=1e-6)


def test_files_and_runs_are_loaded_when_they_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = MODELS["BetaVAE"](), MODELS["JointVAE"]()
    vaezoo.save(first, tmp_path / "run/checkpoints/best.ckpt")
    vaezoo.save(second, tmp_path / "other.ckpt")
    encoder = vaezoo.Encoder("run")
    np.testing.assert_allclose(encoder.transform(BYTES), represented(first), atol=1e-6)
    encoder.set_params(checkpoint=tmp_path / "other.ckpt")
    np.testing.assert_allclose(encoder.transform(BYTES), represented(second), atol=1e-6)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(encoder)).transform(BYTES), represented(second), atol=1e-6)
    with pytest.raises(FileNotFoundError, match="no checkpoint at absent"):
        vaezoo.Encoder("absent").transform(BYTES)


def test_in_a_pipeline(tmp_path: Path) -> None:
    vaezoo.save(MODELS["PartedVAE"](), tmp_path / "model.ckpt")
    pipeline = make_pipeline(vaezoo.Encoder(tmp_path / "model.ckpt"), StandardScaler(), LogisticRegression())
    classes = np.arange(7) % 2
    answers = [made.fit(BYTES, classes).predict(BYTES) for made in (pipeline, clone(pipeline))]
    assert np.array_equal(*answers)
    assert set(pipeline[:-1].get_feature_names_out()) == {*(f"z_{i}" for i in range(4)), "u_0", "u_1"}
    assert clone(pipeline[0]).get_params() == {"checkpoint": tmp_path / "model.ckpt", "batch_size": 256}
    unfitted = make_pipeline(vaezoo.Encoder(tmp_path / "model.ckpt"))
    assert unfitted.transform(BYTES).shape == (7, 6)  # nothing needs to be fitted


def test_a_model_that_is_given_stays_as_it_is() -> None:
    model = MODELS["BetaVAE"]().double().train()
    codes = vaezoo.Encoder(model).transform(BYTES)
    assert model.training
    assert model.dtype == torch.float64
    np.testing.assert_allclose(codes, represented(model.float()), atol=1e-6)


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (BYTES[0], ValueError, r"single image needs one more dimension, images\[None\]"),
        (BYTES[:, 0], ValueError, r"the channel is missing, images\[:, None\]"),
        (BYTES.transpose(0, 2, 3, 1), ValueError, r"channels come first, images.transpose\(0, 3, 1, 2\)"),
        (torch.from_numpy(BYTES).permute(0, 2, 3, 1), ValueError, r"images.permute\(0, 3, 1, 2\)"),
        (BYTES.reshape(7, -1), ValueError, r"they are flat, images.reshape\(-1, 1, 16, 16\)"),
        (BYTES[..., :8], ValueError, r"images are \(7, 1, 16, 8\), the model reads \(N, 1, 16, 16\): resize"),
        (BYTES.astype(np.int64), TypeError, "images are int64: give bytes"),
        (BYTES > 127, TypeError, "images are bool: give bytes"),
        (torch.from_numpy(BYTES).long(), TypeError, "images are torch.int64: give bytes"),
        (
            BYTES.astype(np.float32),
            ValueError,
            "images are floats from 0 to 255, the model reads 0 to 1: divide by 255",
        ),
        (BYTES / 255 - 0.5, ValueError, "images are floats from -0.5 to 0.5"),
        (np.full(BYTES.shape, np.nan), ValueError, "images are floats from nan to nan"),
        (list(BYTES), TypeError, "images are a list: give a NumPy array or a tensor"),
    ],
)
def test_wrong_images_are_one_clear_error(images: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        vaezoo.Encoder(MODELS["BetaVAE"]()).transform(images)


def test_a_batch_holds_at_least_one_image() -> None:
    with pytest.raises(ValueError, match="batch_size must be at least 1, not 0"):
        vaezoo.Encoder(MODELS["BetaVAE"](), batch_size=0).transform(BYTES)


def test_a_pretrained_model_goes_by_its_name() -> None:
    images = np.random.default_rng(0).integers(0, 256, (3, 3, 64, 64), dtype=np.uint8)
    found = vaezoo.Encoder("pretrained:larvae_3dshapes_demo").transform(images)
    model = vaezoo.pretrained("larvae_3dshapes_demo")
    np.testing.assert_allclose(found, represented(model, images), rtol=1e-4, atol=1e-6)
