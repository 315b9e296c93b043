"""Which images are labelled, and how many are held out."""

from typing import Any

import pytest
import torch

from tests.helpers.toy import ToyDataModule


def ready(**options: Any) -> ToyDataModule:
    data = ToyDataModule(**options)
    data.setup()
    return data


def test_the_labelled_set_follows_the_split_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ready(labels=10)
    monkeypatch.setenv("PL_GLOBAL_SEED", "5")
    again = ready(labels=10, batch_size=3, num_workers=2, labelled_batch_size=1)
    assert torch.equal(first.labelled_ids, again.labelled_ids)
    assert set(first.labelled_ids.tolist()) <= set(first.train_ids.tolist())
    assert not torch.equal(first.labelled_ids, ready(labels=10, split_seed=1).labelled_ids)


def test_the_labelled_set_is_balanced_over_the_chosen_classes() -> None:
    data = ready(labels=20, labelled_factors=["shape"], label_form="index")
    assert data.labels_of(data.labelled_ids)[:, 0].long().bincount().tolist() == [5, 5, 5, 5]
    data = ready(labels=20, labelled_factors=["shape", "size"])
    assert len(data.labels_of(data.labelled_ids).unique(dim=0)) == 20


def test_the_labelled_set_may_be_the_first_training_images_or_any() -> None:
    assert ready(labels=10, labelled_set="first", val_size=0, test_size=0).labelled_ids.tolist() == list(range(10))
    data = ready(labels=10, labelled_set="first")
    assert data.labelled_ids.tolist() == data.train_ids[:10].tolist()
    counts = torch.zeros(4)
    for seed in range(50):
        chosen = ready(labels=4, labelled_set="random", labelled_factors=["shape"], split_seed=seed)
        found = chosen.factors_of(chosen.labelled_ids)[:, 0].bincount(minlength=4)
        counts += found == 1  # each time in every class, were it balanced
    assert 10 <= counts.min() <= counts.max() <= 35


def test_sizes_may_be_fractions_of_all_images() -> None:
    data = ready(val_size=0.25, test_size=0.1)
    assert (len(data.train_ids), len(data.val_ids), len(data.test_ids)) == (78, 30, 12)
