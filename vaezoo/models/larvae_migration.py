"""LaRVAE checkpoints of version 0.1.0, where labels and nuisance shared one latent group "z"."""

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vaezoo.regularizers import Regularizer
from vaezoo.regularizers.groups import LabelTerm, SpanningTerm
from vaezoo.specs import find

_HEADS = [f"heads.{group}.parameters_of.{kind}" for group in "yz" for kind in ("weight", "bias")]
_OLD_HEAD = _HEADS[2:]
_LABEL_DIM = 6  # what 0.1.0 took where no number of labels was given


def has_one_group(checkpoint: Mapping[str, Any]) -> bool:
    """Whether labels and nuisance share a head."""
    return _OLD_HEAD[0] in checkpoint["state_dict"] and _HEADS[0] not in checkpoint["state_dict"]


def read_both_groups(arguments: MutableMapping[str, Any]) -> None:
    """Let terms that read "z" find the groups by themselves; changes a LaRVAE's arguments in place."""
    if arguments.get("label_dim") is None:
        arguments["label_dim"] = _LABEL_DIM
    for terms in (arguments.get("unsupervised"), arguments.get("regularizers")):
        for term in (terms or {}).values():
            own = issubclass(find(Regularizer, term["class_path"]), (SpanningTerm, LabelTerm))
            if own and (term.get("init_args") or {}).get("latent") == "z":
                term["init_args"]["latent"] = None


def updated_arguments(path: Any, key: str) -> dict[str, Any]:
    """Updated arguments from the given key of a 0.1.0 checkpoint; empty for other checkpoints."""
    if not isinstance(path, (str, Path)) or not Path(path).is_file():
        return {}
    checkpoint = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    if not has_one_group(checkpoint):
        return {}
    read_both_groups(checkpoint[key])
    return {name: checkpoint[key].get(name) for name in ("label_dim", "unsupervised", "regularizers")}


def split_groups(checkpoint: dict[str, Any], label_dim: int, first: int) -> None:
    """Give the labels' share of the head, and of all that was kept about it, to a head of their own.

    Args:
        checkpoint: The checkpoint, which is changed.
        label_dim: Number of labels.
        first: Place of the head's weight among the optimizer's parameters; its bias comes next.
    """
    state = checkpoint["state_dict"]
    parts = _split([state.pop(name) for name in _OLD_HEAD], label_dim)
    state.update(zip(_HEADS, parts, strict=False))
    for optimizer in checkpoint.get("optimizer_states", ()):
        _split_moments(optimizer, label_dim, first, len(parts) - len(_OLD_HEAD))
    for callback in checkpoint.get("callbacks", {}).values():
        if past := callback.get("history", {}).pop("z", None):  # of SaveUnitNats: step, capacity, KL of each unit
            callback["history"]["y"] = [row[: 2 + label_dim] for row in past]
            if len(past[0]) > 2 + label_dim:
                callback["history"]["z"] = [row[:2] + row[2 + label_dim :] for row in past]


def _split(head: list[Tensor], label_dim: int) -> list[Tensor]:
    """Weight and bias of y, then of z if it has any, from those of both: means first, then log-variances."""
    dim = len(head[0]) // 2
    rows = torch.arange(2 * dim, device=head[0].device).reshape(2, dim).tensor_split([label_dim], dim=1)
    return [tensor[chosen.flatten()] for chosen in rows if chosen.numel() for tensor in head]


def _split_moments(optimizer: dict[str, Any], label_dim: int, first: int, added: int) -> None:
    """Split what Adam keeps about the head; parameters behind it move up by those that are added."""
    places = {first + 1: list(range(first + 1, first + 2 + added))}  # the added ones follow the old bias
    for group in optimizer["param_groups"]:
        group["params"] = [new for old in group["params"] for new in places.get(old, [old + added * (old > first + 1)])]
    kept = optimizer["state"]
    optimizer["state"] = {old + added * (old > first + 1): moments for old, moments in kept.items()}
    if first not in kept:  # nothing was trained yet
        return
    parts: list[dict[str, Any]] = [{} for _ in range(2 + added)]
    for key, value in kept[first].items():
        halves = _split([value, kept[first + 1][key]], label_dim) if value.ndim else [value.clone() for _ in parts]
        for part, half in zip(parts, halves, strict=True):
            part[key] = half  # a clone of the step's count: Adam raises each in place
    optimizer["state"].update(enumerate(parts, first))
