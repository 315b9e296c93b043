"""Scores that read more than one pool of test images: fitted on training images, or decoded labels."""

import json
import math
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch import Trainer

import vaezoo
from datamodules import BlobsDataModule
from datamodules.factors import Factor
from tests.helpers.toy import Numbered, ToyDataModule
from vaezoo.callbacks import EvaluateDisentanglement
from vaezoo.cli.main import run
from vaezoo.evaluation.report import DETAIL
from vaezoo.metrics import AttributeAccuracy, functional as F
from vaezoo.metrics.encoded import Encoded
from vaezoo.metrics.functional.threads import in_threads
from vaezoo.types import Batch

NAMES = ("Smiling", "Male", "5_o_Clock_Shadow", "Bangs", "Hat", "Young")
NETWORK = '--model.network={"class_path": "DenseNetwork", "init_args": {"encoder_widths": [8], "decoder_widths": [8]}}'


class AttributesDataModule(ToyDataModule):
    """64 pictures with six binary attributes."""

    factors = tuple(Factor(name, 2, "categorical") for name in NAMES)

    def __init__(self) -> None:
        super().__init__(val_size=8, test_size=16)

    def open(self) -> Numbered:
        return Numbered(64)


class OneHotDataModule(ToyDataModule):
    """The toy with one-hot labels of shape, size and angle, all of them known."""

    def __init__(self) -> None:
        super().__init__(label_form="onehot", labels=1.0, labelled_batch_size=0)


def trained(folder: Path, model: list[str], data: str) -> Path:
    options = [f"--data=tests.evaluation.test_pools.{data}", NETWORK, "--trainer.max_steps=30"]
    options += ["--trainer.enable_progress_bar=false", "--experiment=e", f"--runs_dir={folder}"]
    assert run(["fit", *model, *options]) == 0
    return next(folder.glob("e/*/checkpoints/last.ckpt"))


def scored(checkpoint: Path, *options: str) -> dict[str, Any]:
    assert run(["evaluate", "--ckpt_path", str(checkpoint), *options]) == 0
    return dict(json.loads(checkpoint.with_name("metrics.json").read_text()))


def coded(checkpoint: Path, data: AttributesDataModule, ids: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    x = data.pictures.images(ids).float() * (1 / 255)
    return vaezoo.load(checkpoint).represent(x).double().numpy(), data.factors_of(ids).numpy()


def test_attributes_are_fitted_on_the_training_split_and_scored_on_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = trained(tmp_path, ["--model=BetaVAE", "--model.latent_dim=3"], "AttributesDataModule")
    data = AttributesDataModule()
    data.setup()
    found = scored(checkpoint, "--metrics", "attribute_accuracy", "--resamples=20")["metrics"]["attribute_accuracy"]
    train, test = coded(checkpoint, data, data.train_ids), coded(checkpoint, data, data.test_ids)
    expected = F.attribute_accuracy(*train, test=test, attribute_names=NAMES)
    assert list(found["scores"]) == ["attribute_accuracy", *(f"attribute_accuracy_{name}" for name in NAMES)]
    assert {name: score["value"] for name, score in found["scores"].items()} == pytest.approx(expected)
    assert found["fitted_on"] == {"split": "train", "images": 40}
    assert "training" in found["interval"]["drawn"]
    assert all(score["low"] <= score["value"] <= score["high"] for score in found["scores"].values())
    shown = capsys.readouterr().out
    assert "attribute_accuracy " in shown
    assert "attribute_accuracy_Smiling" not in shown  # forty of them are for the files
    assert DETAIL.search("attribute_accuracy_Smiling")
    assert not DETAIL.search("attribute_accuracy")


def test_the_callback_fits_attributes_on_the_training_split(tmp_path: Path) -> None:
    torch.manual_seed(0)
    data, callback = AttributesDataModule(), EvaluateDisentanglement([AttributeAccuracy()], split="test")
    model = vaezoo.BetaVAE(data.image_shape, latent_dim=3, network=vaezoo.DenseNetwork((8,), (8,)))
    options: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = Trainer(accelerator="cpu", callbacks=[callback], **options)
    trainer.validate(model, datamodule=data, verbose=False)

    def pool(ids: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        x = data.pictures.images(ids).float() * (1 / 255)
        return model.represent(x).double().numpy(), data.factors_of(ids).numpy()

    expected = F.attribute_accuracy(*pool(data.train_ids), test=pool(data.test_ids), attribute_names=NAMES)
    found = {name.removeprefix("val/"): value.item() for name, value in trainer.callback_metrics.items()}
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_labels_are_decoded_from_mean_codes(tmp_path: Path) -> None:
    checkpoint = trained(tmp_path, ["--model=WeLaVAE", "--model.latent_dim=3"], "OneHotDataModule")
    found = scored(checkpoint, "--metrics", "label_accuracy", "--split=all", "--resamples=0")
    assert found["images"] == 120
    data, ids = OneHotDataModule(), torch.arange(120)
    x, y = data.pictures.images(ids).float() * (1 / 255), data.labels_of(ids)
    model = vaezoo.load(checkpoint)
    logits = model.decode_with_labels({"z": model.encode(x, y)["z"].mode()})[1]
    truth = data.factors_of(ids)
    each = [(part.argmax(1) == truth[:, k]).double().mean().item() for k, part in enumerate(logits)]
    scores = {name: score["value"] for name, score in found["metrics"]["label_accuracy"]["scores"].items()}
    names = ["label_accuracy", *(f"label_accuracy_{name}" for name in ("shape", "size", "angle"))]
    assert scores == pytest.approx(dict(zip(names, [sum(each) / 3, *each], strict=True)))


def test_labels_that_are_not_observed_have_no_class() -> None:
    model = vaezoo.WeLaVAE((1, 1, 2), (2, 3), network=vaezoo.DenseNetwork((4,), (4,))).eval()
    y = torch.tensor([[0, 1, 1, 0, 0], [1, 0, math.nan, math.nan, math.nan]])
    encoded = Encoded(model, Batch(torch.rand(2, 1, 1, 2), y, torch.ones(2, dtype=torch.bool)), torch.zeros(2, 1))
    torch.testing.assert_close(encoded.label_classes, torch.tensor([[1, 0], [0, math.nan]]), equal_nan=True)
    assert encoded.decoded_labels.shape == (2, 2)


def test_a_batch_is_encoded_once_for_all_that_scores_read() -> None:
    model = vaezoo.LaRVAE((1, 1, 2), 2, network=vaezoo.DenseNetwork((4,), (4,))).eval()
    passes: list[int] = []
    model.encoder.register_forward_hook(lambda *_: passes.append(1))
    x = torch.rand(3, 1, 1, 2)
    encoded = Encoded(model, Batch(x, torch.zeros(3, 2), torch.zeros(3, dtype=torch.bool)), torch.zeros(3, 1))
    found = [encoded.codes, encoded.inferred_labels, encoded.reconstructions]
    assert encoded.nats.shape == encoded.codes.shape
    assert len(passes) == 1
    for part, expected in zip(found, (model.represent(x), model.infer_labels(x), model.reconstruct(x)), strict=True):
        torch.testing.assert_close(part, expected, rtol=0, atol=0)


def test_batches_are_encoded_side_by_side() -> None:
    model = vaezoo.VAE((1, 1, 2), network=vaezoo.DenseNetwork((4,), (4,))).eval()
    both = Barrier(2, timeout=10)  # breaks unless two batches are inside the encoder at a time
    x = torch.rand(2, 3, 1, 1, 2)

    def wait(*_: object) -> None:
        both.wait()

    def codes(i: int) -> torch.Tensor:
        batch = Batch(x[i], torch.zeros(3, 0), torch.zeros(3, dtype=torch.bool))
        return Encoded(model, batch, torch.zeros(3, 1)).codes

    model.encoder.register_forward_hook(wait)
    assert len(in_threads(codes, range(2), jobs=2)) == 2


def test_a_model_that_defines_its_own_codes_is_scored_by_them() -> None:
    class Doubled(vaezoo.VAE):
        def represent(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
            return 2 * super().represent(x, y)

    model = Doubled((1, 1, 2), network=vaezoo.DenseNetwork((4,), (4,))).eval()
    x = torch.rand(3, 1, 1, 2)
    encoded = Encoded(model, Batch(x, torch.zeros(3, 0), torch.zeros(3, dtype=torch.bool)), torch.zeros(3, 1))
    torch.testing.assert_close(encoded.codes, 2 * model.encode(x)["z"].mode())


def test_blobs_name_their_labels() -> None:
    data = BlobsDataModule()
    assert data.labelled_names == ("angle", "distance")
    assert len(data.labelled_names) == len(data.label_sizes)
