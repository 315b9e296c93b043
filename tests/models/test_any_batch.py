"""Every model takes whatever a loader yields: a `Batch`, images, images and labels, or a mapping of them."""

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import LightningDataModule, Trainer
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset
from torchvision.datasets import FakeData
from torchvision.transforms import ToTensor

import vaezoo
from tests.helpers.zoo import MODELS, NETWORK, SHAPE
from vaezoo import Batch, BetaVAE, EvaluateDisentanglement, LaRVAE, PartedVAE, SavePictures, ThroughputBar, WeLaVAE
from vaezoo.models.base import VAE

N = 6
models = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
Make = Callable[[], VAE]
Form = Callable[[Tensor, Tensor], Any]

LABELLED: dict[str, Form] = {
    "Batch": lambda x, y: Batch.of((x, y)),
    "tuple": lambda x, y: (x, y),
    "list": lambda x, y: [x, y],
    "image and label": lambda x, y: {"image": x, "label": y, "id": torch.arange(len(x))},
    "x and y": lambda x, y: {"x": x, "y": y},
}
ALONE: dict[str, Form] = {
    "Batch.unlabelled": lambda x, y: Batch.unlabelled(x),
    "images": lambda x, y: x,
    "list of images": lambda x, y: [x],
    "mapping of images": lambda x, y: {"images": x},
}


def images(seed: int = 0) -> Tensor:
    """Bytes."""
    return torch.randint(0, 256, (N, *SHAPE), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def as_floats(x: Tensor) -> Tensor:
    return x.float() * (1 / 255)


def labels_for(model: VAE) -> Tensor:
    """Labels of the kind that the model reads, as somebody's dataset would give them."""
    if isinstance(model, LaRVAE):
        return torch.rand(N, 3, generator=torch.Generator().manual_seed(0))
    if isinstance(model, PartedVAE) and len(model.classes.sizes) > 1:
        return torch.arange(N)[:, None] % torch.tensor(model.classes.sizes)
    return torch.arange(N) % 3


def needs_labels(model: VAE) -> bool:
    return isinstance(model, (LaRVAE, WeLaVAE))


def trainer(folder: Path, **options: Any) -> Trainer:
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    options = {"max_epochs": 1, "accelerator": "cpu", "enable_model_summary": False, **quiet, **options}
    return Trainer(default_root_dir=folder, **options)


def loader(batches: list[Any]) -> DataLoader[Any]:
    return DataLoader(batches, batch_size=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", LABELLED.values(), ids=LABELLED.keys())
def test_every_form_makes_the_same_batch(form: Form) -> None:
    x, y = as_floats(images()), torch.tensor([[0.5, 1], [2, torch.nan], [torch.nan, torch.nan], [0, 0], [1, 1], [2, 2]])
    batch = Batch.of(form(x, y))
    assert batch.x is x
    torch.testing.assert_close(batch.y, y, equal_nan=True)
    assert batch.labelled.tolist() == [True, True, False, True, True, True]
    assert Batch.of(batch) is batch


@pytest.mark.parametrize("form", ALONE.values(), ids=ALONE.keys())
def test_images_alone_have_labels_of_width_0(form: Form) -> None:
    batch = Batch.of(form(images(), torch.empty(0)))
    assert batch.y.shape == (N, 0)
    assert not batch.labelled.any()


def test_classes_become_a_column_of_floats() -> None:
    batch = Batch.of((images(), torch.arange(N)))
    assert batch.y.tolist() == [[float(k)] for k in range(N)]
    assert batch.y.dtype == torch.float32
    assert batch.labelled.all()
    assert Batch.of((images(), torch.rand(N, dtype=torch.float64))).y.dtype == torch.float32


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"pixels": images(), "label": torch.arange(N)}, "keys pixels, label holds no images.* x, image, images, img"),
        ((images(), torch.arange(N), torch.arange(N)), "a batch of 3 parts: a batch is images, .images, labels.,"),
        ("images", "images must be a tensor, not a str"),
        ((images(), torch.arange(N - 1)), r"labels of 6 images must be a tensor \(B,\) or \(B, K\), not \(5,\)"),
        ((images(), torch.zeros(N, 2, 2)), r"not \(6, 2, 2\)"),
        ((images(), [0] * N), "not a list"),
        (images().long(), "images are torch.int64: give floats in .0, 1., or bytes"),
        (torch.rand(N, 3, 16, 16), r"images are \(3, 16, 16\), the model's image_shape .* is \(1, 16, 16\)"),
        (torch.rand(N, 1, 32, 32), r"images are \(1, 32, 32\)"),
        (torch.rand(N, 16, 16), r"images are \(16, 16\)"),
    ],
)
def test_a_batch_that_no_model_can_read_is_one_clear_error(batch: Any, message: str, tmp_path: Path) -> None:
    model = MODELS["BetaVAE"]()
    for step in (model.training_step, model.terms, model.validation_step, model.test_step, model.predict_step):
        with pytest.raises((TypeError, ValueError), match=message):
            step(batch)
    with pytest.raises((TypeError, ValueError), match=message):
        trainer(tmp_path).fit(model, loader([batch]))


def loss_of(model: VAE, batch: Any) -> Tensor:
    """Of a copy: running estimates move with every call."""
    torch.manual_seed(1)
    return copy.deepcopy(model).training_step(batch)


@models
def test_every_form_gives_the_same_loss_without_a_trainer(make: Make) -> None:
    torch.manual_seed(0)
    model, x = make(), images()
    y = labels_for(model)
    forms = {"labelled": LABELLED} | ({} if needs_labels(model) else {"alone": ALONE})
    for kind, members in forms.items():
        expected = loss_of(model, (as_floats(x), y) if kind == "labelled" else as_floats(x))
        assert expected.isfinite()
        for form in members.values():
            for pixels in (x, as_floats(x)):
                assert torch.equal(loss_of(model, form(pixels, y)), expected)
        torch.testing.assert_close(loss_of(model, form(as_floats(x).double(), y)), expected)


@models
def test_a_trainer_takes_every_form(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of every form, bytes and floats in turn, against the same images as float batches."""
    monkeypatch.setenv("PL_GLOBAL_SEED", "0")  # the noise of a batch then depends on its number alone
    torch.manual_seed(0)
    model, x = make(), images()
    twin, y = copy.deepcopy(model), labels_for(model)
    forms = [*LABELLED.values(), *ALONE.values()]
    mixed = [form(as_floats(x) if k % 2 else x, y) for k, form in enumerate(forms)]
    plain = [Batch.of(batch).floats() for batch in mixed]
    known = slice(len(LABELLED) if needs_labels(model) else None)
    run = trainer(tmp_path)
    run.fit(model, loader(mixed[known]))
    trainer(tmp_path).fit(twin, loader(plain[known]))
    assert model.step == len(mixed[known])
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))
    scores = []
    for evaluate, batches in ((run.test, plain), (run.test, mixed), (run.validate, mixed)):
        torch.manual_seed(0)  # a discriminator permutes in evaluation too
        (score,) = evaluate(model, loader(batches), verbose=False)
        scores.append({name.partition("/")[2]: value for name, value in score.items()})
    assert scores[0] == scores[1] == scores[2]
    codes = run.predict(model, loader(mixed))
    assert all(torch.equal(a, model.codes(b)) for a, b in zip(codes or [], plain, strict=True))


def test_a_dataset_of_torchvision_and_a_tensor_dataset_train(tmp_path: Path) -> None:
    model = BetaVAE((3, 32, 32), 4, network=NETWORK)
    pictures = FakeData(8, (3, 32, 32), num_classes=3, transform=ToTensor())
    tensors = TensorDataset(torch.randint(0, 256, (8, 3, 32, 32), dtype=torch.uint8))
    for data in (pictures, tensors):
        run = trainer(tmp_path)
        run.fit(model, DataLoader(data, batch_size=4), DataLoader(data, batch_size=4))
    assert model.step == 4
    assert run.predict(model, DataLoader(tensors, batch_size=4))[0].shape == (4, 4)  # type: ignore[index,union-attr]


@pytest.mark.parametrize(("name", "term"), [("LaRVAE", "labels"), ("SS-FactorVAE", "labels"), ("WeLaVAE", "labels")])
def test_training_a_supervised_term_on_images_alone_is_an_error(name: str, term: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    with pytest.raises(ValueError, match=f"term '{term}' reads labels, but the loader yields only images"):
        trainer(tmp_path).fit(model, loader([images()]))
    terms = model.eval().terms(images())  # evaluation leaves the term out
    assert terms[term].loss == 0
    unknown = torch.full((N, 3), torch.nan)
    assert torch.equal(model.predict_step(images()), model.predict_step((images(), unknown)))


def test_partly_labelled_images_are_divided_among_the_terms() -> None:
    """Rows with a known label are for the supervised terms, as in a `Batch` that says so."""
    model, x, y = MODELS["LaRVAE"](), as_floats(images()), torch.rand(N, 3)
    y[:4] = torch.nan
    y[4, 0] = torch.nan
    known = torch.tensor([False] * 4 + [True] * 2)
    assert torch.equal(loss_of(model, (x, y)), loss_of(model, Batch(x, y, known)))


def test_wela_vae_reads_class_indices_as_one_hot_labels(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = WeLaVAE(SHAPE, [3, 2], network=NETWORK)
    x, classes = as_floats(images()), torch.arange(N)[:, None] % torch.tensor([3, 2])
    hot = torch.cat([torch.eye(3)[classes[:, 0]], torch.eye(2)[classes[:, 1]]], 1)
    assert torch.equal(loss_of(model, (x, classes)), loss_of(model, (x, hot)))
    partly, partly_hot = classes.float(), hot.clone()
    partly[2, 1], partly_hot[2, 3:] = torch.nan, torch.nan
    assert torch.equal(loss_of(model, (x, partly)), loss_of(model, (x, partly_hot)))
    assert torch.equal(model.represent(x, partly), model.represent(x, partly_hot))
    with pytest.raises(ValueError, match=r"the model has \[3, 2\]: raise model.label_sizes to \[4, 3\]"):
        trainer(tmp_path).fit(model, loader([(x, classes + 1)]))


def test_the_mask_stays_on_the_host() -> None:
    """Nothing can be read from the meta device: whatever would wait for a device fails there."""
    model, device = MODELS["LaRVAE"](), torch.device("meta")
    for labels in (torch.arange(N), torch.rand(N, 3).where(torch.arange(N)[:, None] > 2, torch.nan)):
        moved = model.on_after_batch_transfer(model.transfer_batch_to_device((images(), labels), device, 0), 0)
        assert (moved.x.device.type, moved.y.device.type, moved.labelled.device.type) == ("meta", "meta", "cpu")
        assert moved.x.dtype == torch.float32


def test_callbacks_read_any_batch(tmp_path: Path) -> None:
    callbacks = [ThroughputBar(), SavePictures(2), EvaluateDisentanglement([vaezoo.metrics.MIG()], images=30)]
    run = trainer(tmp_path, callbacks=callbacks, enable_progress_bar=True, num_sanity_val_steps=0)
    batches = [form(images(), torch.arange(N)) for form in LABELLED.values()]
    run.fit(MODELS["BetaVAE"](), loader(batches), loader([*batches, images()]))
    assert "val/mig_20" in run.callback_metrics
    assert (tmp_path / "pictures" / "reconstructions.png").is_file()


class Own(LightningDataModule):
    """Somebody's data, whose hooks expect what its loaders yield."""

    def train_dataloader(self) -> DataLoader[Any]:
        return loader([{"image": images(), "label": torch.arange(N)}] * 2)

    def val_dataloader(self) -> DataLoader[Any]:
        return self.train_dataloader()

    def on_after_batch_transfer(self, batch: Mapping[str, Tensor], dataloader_idx: int) -> Mapping[str, Tensor]:
        return {**batch, "image": 255 - batch["image"]}


def test_hooks_of_a_datamodule_come_before_the_model_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PL_GLOBAL_SEED", "0")
    torch.manual_seed(0)
    model = MODELS["BetaVAE"]()
    twin = copy.deepcopy(model)
    run = trainer(tmp_path, callbacks=[ThroughputBar(), SavePictures(2)], enable_progress_bar=True)
    run.fit(model, datamodule=Own())
    trainer(tmp_path).fit(twin, loader([255 - images()] * 2))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))
    assert (tmp_path / "pictures" / "samples.png").is_file()
