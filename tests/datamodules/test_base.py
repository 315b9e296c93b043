import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor

from datamodules.base import ImageDataModule
from tests.helpers.toy import ToyDataModule, ids_of
from vaezoo.types import Batch


class Recorder(LightningModule):
    """Fits labels with a line, from labelled rows alone, and writes down what it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(2, 3)
        self.seen: list[list[int]] = []
        self.losses: list[float] = []

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        self.seen.append(ids_of(batch.x))
        predicted = self.line(batch.x.flatten(1))
        loss: Tensor = (predicted[batch.labelled] - batch.y[batch.labelled]).square().mean()
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        assert batch.labelled.all()

    def test_step(self, batch: Batch, batch_idx: int) -> None:
        self.seen.append(ids_of(batch.x))

    predict_step = test_step

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PL_GLOBAL_SEED", raising=False)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def trainer(folder: Path, **options: Any) -> Trainer:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "num_sanity_val_steps": 0}
    return Trainer(accelerator="cpu", default_root_dir=folder, **(quiet | {"enable_checkpointing": False} | options))


def ready(**options: Any) -> ToyDataModule:
    data = ToyDataModule(**options)
    data.setup()
    return data


def on_device(data: ImageDataModule, batch: Batch) -> Batch:
    return data.on_after_batch_transfer(data.transfer_batch_to_device(batch, torch.device("cpu"), 0), 0)


def test_surface() -> None:
    data = ToyDataModule()
    assert data.image_shape == (1, 1, 2)
    assert data.factor_names == ("shape", "size", "angle")
    assert data.factor_sizes == (4, 5, 6)
    assert data.factor_kinds == ("categorical", "ordered", "periodic")
    assert data.label_size == 3
    assert ToyDataModule(label_form="onehot").label_size == 15
    assert ToyDataModule(label_form="onehot", labelled_factors=["size", "shape"]).label_size == 9
    assert ToyDataModule(label_form="index", labelled_factors=["size"]).label_size == 1


def test_images_at_every_point_of_the_grid() -> None:
    data = ToyDataModule()
    images = data.images_at(data.factors_of(torch.arange(120)))
    assert ids_of(images) == list(range(120))
    assert images.dtype == torch.float32
    assert images.max() == 119 / 255


def test_bytes_become_floats_on_the_device() -> None:
    data = ready()
    batch = next(iter(data.train_dataloader()))
    assert batch.x.dtype == torch.uint8
    moved = on_device(data, batch)
    assert moved.x.dtype == torch.float32
    torch.testing.assert_close(moved.x, batch.x.float() / 255, rtol=2e-7, atol=0)
    every = batch._replace(x=torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16))
    assert (on_device(data, every).x.min(), on_device(data, every).x.max()) == (0, 1)  # likelihoods need [0, 1]


def test_without_labels_no_row_has_one() -> None:
    data = ready()
    for batch in data.train_dataloader():
        assert len(batch.x) == 8
        assert batch.y.shape == (8, 3)
        assert batch.y.isnan().all()
        assert not batch.labelled.any()


@pytest.mark.parametrize("size", [None, 3])
def test_labelled_rows_follow_the_stream(size: int | None) -> None:
    data = ready(labels=10, labelled_batch_size=size)
    extra = 8 if size is None else size
    seen = []
    for batch in data.train_dataloader():
        assert batch.labelled.tolist() == [False] * 8 + [True] * extra
        assert batch.y[:8].isnan().all()
        ids = ids_of(batch.x)
        assert torch.equal(batch.y[8:], data.labels_of(torch.tensor(ids[8:])))
        assert set(ids[8:]) <= set(data.labelled_ids.tolist())
        seen += ids[:8]
    assert sorted(seen) == data.train_ids.tolist()  # labelled images are part of the stream too


@pytest.mark.parametrize("labels", [1.0, 30])
def test_rows_of_the_stream_keep_their_labels_at_a_labelled_batch_size_of_0(labels: int | float) -> None:
    data = ready(labels=labels, labelled_batch_size=0)
    seen = []
    for batch in data.train_dataloader():
        ids = torch.tensor(ids_of(batch.x))
        assert torch.equal(batch.labelled, torch.isin(ids, data.labelled_ids))
        assert torch.equal(batch.y[batch.labelled], data.labels_of(ids[batch.labelled]))
        assert batch.y[~batch.labelled].isnan().all()
        seen += ids.tolist()
    assert sorted(seen) == data.train_ids.tolist()
    assert len(data.labelled_ids) == (96 if labels == 1.0 else 30)


@pytest.mark.parametrize("size", [None, 0])
def test_other_labels_cannot_reach_a_training_loss(
    size: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled = ready(labels=40).labelled_ids
    honest = ToyDataModule.labels_of

    def poisoned(self: ToyDataModule, ids: Tensor) -> Tensor:
        labels = honest(self, ids)
        labels[~torch.isin(ids, labelled)] = torch.nan
        return labels

    monkeypatch.setattr(ToyDataModule, "labels_of", poisoned)
    torch.manual_seed(2)
    data, model = ToyDataModule(labels=40, labelled_batch_size=size), Recorder()
    trainer(tmp_path, max_epochs=5, limit_val_batches=0).fit(model, data)
    assert len(model.losses) == 60
    assert np.isfinite(model.losses).all()
    assert np.mean(model.losses[-12:]) < 0.5 * np.mean(model.losses[:12])
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_training_knows_no_label_but_those_of_the_labelled_set(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    honest = ToyDataModule.labels_of

    def spying(self: ToyDataModule, ids: Tensor) -> Tensor:
        asked.extend(ids.tolist())
        return honest(self, ids)

    monkeypatch.setattr(ToyDataModule, "labels_of", spying)
    data = ready(labels=40, labelled_batch_size=0)
    list(data.train_dataloader())
    assert sorted(set(asked)) == data.labelled_ids.tolist()
    others = torch.tensor([i for i in range(120) if i not in data.labelled_ids])
    batch = data._training_batch(others, 0)
    assert batch.y.isnan().all()
    assert not batch.labelled.any()


def test_labels_may_be_partly_observed() -> None:
    data = ToyDataModule(labels=40, observed=0.5)
    data.setup()
    batch = next(iter(data.train_dataloader()))
    rows = batch.y[batch.labelled]
    assert 0 < rows.isnan().float().mean() < 1
    assert (~rows.isnan()).any(1).all()
    assert not data.labels_of(data.val_ids).isnan().any()


def test_fractions_are_shares_of_the_training_set() -> None:
    assert len(ready(labels=0.25).labelled_ids) == 24


def test_runs_with_other_seeds_see_other_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = []
    for seed in ("0", "0", "1"):
        monkeypatch.setenv("PL_GLOBAL_SEED", seed)
        orders.append([ids_of(batch.x) for batch in ready(labels=10).train_dataloader()])
    assert orders[0] == orders[1] != orders[2]


def test_a_second_run_starts_from_the_first_epoch_again(tmp_path: Path) -> None:
    data, orders = ToyDataModule(labels=10), []
    for _ in range(2):
        model = Recorder()
        trainer(tmp_path, max_steps=5, limit_val_batches=0).fit(model, data)
        orders.append(model.seen)
    assert orders[0] == orders[1]


def test_labelled_ids_are_in_the_runs_folder(tmp_path: Path) -> None:
    data = ToyDataModule(labels=10)
    trainer(tmp_path, max_steps=1, limit_val_batches=0).fit(Recorder(), data)
    saved = np.load(tmp_path / "labelled_ids.npy", allow_pickle=False)
    assert saved.tolist() == data.labelled_ids.tolist()


def test_evaluation_is_in_order_and_fully_labelled(tmp_path: Path) -> None:
    data, model = ToyDataModule(), Recorder()
    fit = trainer(tmp_path)
    fit.test(model, data)
    assert [i for ids in model.seen for i in ids] == data.test_ids.tolist()
    fit.predict(model, data)
    assert [i for ids in model.seen for i in ids] == 2 * data.test_ids.tolist()
    batches = list(data.val_dataloader())
    assert [i for batch in batches for i in ids_of(batch.x)] == data.val_ids.tolist()
    assert torch.equal(torch.cat([batch.y for batch in batches]), data.labels_of(data.val_ids))
    assert all(batch.labelled.all() for batch in batches)


def test_nothing_held_out_means_no_validation(tmp_path: Path) -> None:
    data = ToyDataModule(labels=10, val_size=0, test_size=0)
    trainer(tmp_path, max_epochs=1).fit(Recorder(), data)
    assert len(data.train_ids) == 120
    assert data.val_dataloader() == data.test_dataloader() == []
    assert data.evaluation_split == "train"
    (batch, factors), *_ = data.evaluation_batches(20, data.evaluation_split, 0, torch.device("cpu"))
    assert torch.equal(factors, data.factors_of(torch.tensor(ids_of(batch.x))))


def test_device_resident_pictures_are_the_same() -> None:
    lent, kept = ready(labels=10), ready(labels=10, device_resident=True, num_workers=2)
    for name in ("train_dataloader", "val_dataloader", "test_dataloader"):
        for a, b in zip(getattr(lent, name)(), getattr(kept, name)(), strict=True):
            assert b.x.dtype == torch.long  # ids are all that leaves the host
            for x, y in zip(on_device(lent, a), on_device(kept, b), strict=True):
                torch.testing.assert_close(x, y, rtol=0, atol=0, equal_nan=True)


def test_loaders_can_be_sent_to_workers(tmp_path: Path) -> None:
    data = ToyDataModule(labels=10)
    trainer(tmp_path, max_steps=1, limit_val_batches=0).fit(Recorder(), data)
    fetch = pickle.loads(pickle.dumps(data.train_dataloader().fetch))
    assert ids_of(fetch(data.train_ids[:3], 0).x) == data.train_ids[:3].tolist()


@pytest.mark.parametrize(("val", "workers"), [(0, 0), (1, 0), (0, 1)])
@pytest.mark.parametrize("stop", [5, 12], ids=["within an epoch", "at its end"])
def test_a_resumed_run_continues_with_the_next_batch(stop: int, val: int, workers: int, tmp_path: Path) -> None:
    def run(checkpoint: Path | None = None, **options: Any) -> tuple[list[list[int]], Trainer]:
        model, fit = Recorder(), trainer(tmp_path, limit_val_batches=val, **options)
        fit.fit(model, ToyDataModule(labels=10, num_workers=workers), ckpt_path=checkpoint, weights_only=True)
        return model.seen, fit

    unbroken, _ = run(max_epochs=3)
    taken, fit = run(max_steps=stop)
    fit.save_checkpoint(tmp_path / "first.ckpt")
    for limit in ({"max_steps": 36}, {"max_epochs": 3}):  # Lightning restores a loader's state in the first case only
        rest, _ = run(tmp_path / "first.ckpt", **limit)
        assert taken + rest == unbroken[: stop + len(rest)]
        assert len(rest) >= 24 - stop % 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"labelled_batch_size": -1}, "labelled_batch_size must be at least 0, not -1"),
        ({"observed": 0.0}, "observed must be above 0 and at most 1, not 0.0"),
        ({"labelled_factors": ["hue"]}, "labelled_factors hue not known; choose from shape, size, angle"),
        ({"labels": -1}, "labels=-1 must be at least 1 and at most 96"),
        ({"labels": 97}, "labels=97 must be at least 1 and at most 96"),
        ({"labels": 1.5}, "labels=1.5 is a fraction"),
        ({"val_size": 115}, "val_size=115 and test_size=10 leave no training images of 120"),
        ({"val_size": 1.5}, "val_size must be a whole number or a fraction below 1, not 1.5"),
        ({"labelled_set": "last"}, "labelled_set must be one of balanced, random, first, not 'last'"),
        ({"batch_size": 97}, r"too few training images \(96\) for one batch of 97: lower batch_size"),
    ],
)
def test_bad_input(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ready(**options).train_dataloader()


@pytest.mark.parametrize("labels", [0, 0.0, None])
def test_no_labels_at_all(labels: float | None) -> None:
    data = ToyDataModule(labels=labels)
    data.setup()
    assert not len(data.labelled_ids)
    assert not next(iter(data.train_dataloader())).labelled.any()
