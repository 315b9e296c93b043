"""Checkpoints of LaRVAE from before labels and nuisance were two groups; whole ones are in test_older_runs.py."""

import copy
from typing import Any

import pytest
import torch

from vaezoo.models.larvae_migration import has_one_group, read_both_groups, split_groups

K = 2
WEIGHT, BIAS = (f"heads.z.parameters_of.{kind}" for kind in ("weight", "bias"))


def checkpoint(dim: int) -> dict[str, Any]:
    """A head of `dim` means and `dim` log-variances between one parameter before it and one behind it."""
    head = {WEIGHT: torch.rand(2 * dim, 3), BIAS: torch.arange(2.0 * dim)}
    parameters = {"encoder.bias": torch.rand(1), **head, "decoder.bias": torch.rand(1)}
    state = {
        i: {"step": torch.tensor(4.0), "exp_avg": value + 1, "exp_avg_sq": value + 2}
        for i, value in enumerate(parameters.values())
    }
    history = [[float(step), 0.5, *(10.0 * step + unit for unit in range(dim))] for step in range(2)]
    return {
        "state_dict": {"step": torch.tensor(4), **parameters},
        "optimizer_states": [{"state": state, "param_groups": [{"params": [0, 1, 2]}, {"params": [3]}]}],
        "callbacks": {"SaveUnitNats": {"history": {"z": history}}, "LastCheckpoint": {"path": "last.ckpt"}},
    }


def test_a_head_is_split_with_all_that_is_kept_about_it() -> None:
    old = checkpoint(3)
    new = copy.deepcopy(old)
    assert has_one_group(old)
    split_groups(new, K, first=1)
    assert not has_one_group(new)
    assert new["state_dict"]["heads.y.parameters_of.bias"].tolist() == [0, 1, 3, 4]
    assert new["state_dict"][BIAS].tolist() == [2, 5]
    assert torch.equal(new["state_dict"][WEIGHT], old["state_dict"][WEIGHT][[2, 5]])
    (optimizer,) = new["optimizer_states"]
    assert [group["params"] for group in optimizer["param_groups"]] == [[0, 1, 2, 3, 4], [5]]
    assert sorted(optimizer["state"]) == list(range(6))
    assert optimizer["state"][2]["exp_avg"].tolist() == [1, 2, 4, 5]
    assert optimizer["state"][4]["exp_avg_sq"].tolist() == [4, 7]
    assert torch.equal(optimizer["state"][5]["exp_avg"], old["state_dict"]["decoder.bias"] + 1)
    optimizer["state"][1]["step"] += 1  # as Adam does, parameter by parameter
    assert [float(optimizer["state"][i]["step"]) for i in range(6)] == [4, 5, 4, 4, 4, 4]
    history = new["callbacks"]["SaveUnitNats"]["history"]
    assert history == {"y": [[0, 0.5, 0, 1], [1, 0.5, 10, 11]], "z": [[0, 0.5, 2], [1, 0.5, 12]]}


def test_without_nuisance_the_head_is_the_labels() -> None:
    old = checkpoint(K)
    new = copy.deepcopy(old)
    split_groups(new, K, first=1)
    assert torch.equal(new["state_dict"]["heads.y.parameters_of.weight"], old["state_dict"][WEIGHT])
    assert WEIGHT not in new["state_dict"]
    (optimizer,) = new["optimizer_states"]
    assert [group["params"] for group in optimizer["param_groups"]] == [[0, 1, 2], [3]]
    assert torch.equal(optimizer["state"][2]["exp_avg"], old["state_dict"][BIAS] + 1)
    assert list(new["callbacks"]["SaveUnitNats"]["history"]) == ["y"]


def test_an_optimizer_that_took_no_step_keeps_none() -> None:
    new = checkpoint(3)
    new["optimizer_states"][0]["state"] = {}
    split_groups(new, K, first=1)
    assert new["optimizer_states"][0] == {"state": {}, "param_groups": [{"params": [0, 1, 2, 3, 4]}, {"params": [5]}]}


@pytest.mark.parametrize("name", ["KL", "vaezoo.regularizers.kl.KL", "vaezoo.LabelReconstruction"])
def test_terms_that_read_the_one_group_read_both(name: str) -> None:
    terms = {"term": {"class_path": name, "init_args": {"latent": "z"}}}
    arguments: dict[str, Any] = {"unsupervised": terms, "regularizers": None}
    read_both_groups(arguments)
    assert arguments["label_dim"] == 6  # the default of 0.1.0
    assert arguments["unsupervised"]["term"]["init_args"] == {"latent": None}


def test_other_terms_keep_what_they_read() -> None:
    kept = {
        "none": {"class_path": "KL"},
        "other": {"class_path": "KL", "init_args": {"latent": "w"}},
        "discrete": {"class_path": "Entropy", "init_args": {"latent": "z"}},
    }
    arguments: dict[str, Any] = {"label_dim": 3, "regularizers": copy.deepcopy(kept)}
    read_both_groups(arguments)
    assert arguments == {"label_dim": 3, "regularizers": kept}
