"""Splits and labelled sets, as pure functions of a seed."""

from collections.abc import Sequence

import torch
from torch import Tensor


def count_of(amount: int | float, total: int, name: str) -> int:
    """Turn a count or a fraction into a count.

    Args:
        amount: A whole number of images, or a float in (0, 1] as a share of them.
        total: How many there are.
        name: The argument to name in an error.
    """
    if isinstance(amount, float) and amount > 1 and amount.is_integer():
        amount = int(amount)  # a command line may deliver 100 as 100.0
    if isinstance(amount, float):
        if not 0 < amount <= 1:
            raise ValueError(
                f"{name}={amount} is a fraction and must be above 0 and at most 1; give a count as a whole number"
            )
        return max(1, round(amount * total))
    if not 0 < amount <= total:
        raise ValueError(
            f"{name}={amount} must be at least 1 and at most {total}, the number of training images that have labels"
        )
    return amount


def split(total: int, val: int | float, test: int | float, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sorted training ids, and shuffled validation and test ids, so any prefix of these is representative.

    Args:
        total: Number of images.
        val: Images held out for validation: a count, or a fraction below 1 of all.
        test: Images held out for testing, likewise.
        seed: Equal seeds split alike on every machine.
    """
    val, test = held_out_count(val, total, "val_size"), held_out_count(test, total, "test_size")
    if val < 0 or test < 0 or val + test >= total:
        raise ValueError(f"val_size={val} and test_size={test} leave no training images of {total}; make them smaller")
    order = torch.randperm(total, generator=torch.Generator().manual_seed(seed))
    test_ids, val_ids, train_ids = order.split([test, val, total - val - test])
    return train_ids.sort().values, val_ids, test_ids


def held_out_count(size: int | float, total: int, name: str) -> int:
    """Turn a count or a fraction below 1 into a count, which may be 0.

    Args:
        size: A whole number, or a float below 1 as a share of all.
        total: How many there are.
        name: The argument to name in an error.
    """
    if 0 < size < 1:
        return round(size * total)
    if isinstance(size, float) and not size.is_integer():
        raise ValueError(f"{name} must be a whole number or a fraction below 1, not {size}")
    return int(size)


def balanced(cells: Tensor, count: int, seed: int) -> Tensor:
    """Choose positions with equal counts per cell, give or take one, as far as cells have members.

    Args:
        cells: Cell of each candidate, (N,) integers.
        count: How many to choose.
        seed: Equal seeds choose equal positions on every machine.

    Returns:
        Sorted positions into cells, (count,).
    """
    shuffled = torch.randperm(len(cells), generator=torch.Generator().manual_seed(seed))
    by_cell = shuffled[cells[shuffled].sort(stable=True).indices]  # grouped by cell, random within
    _, sizes = cells[by_cell].unique_consecutive(return_counts=True)
    turn = torch.arange(len(cells)) - torch.repeat_interleave(sizes.cumsum(0) - sizes, sizes)
    turns = torch.empty_like(turn)
    turns[by_cell] = turn  # how many of its cell come before each candidate
    chosen = shuffled[turns[shuffled].sort(stable=True).indices[:count]]
    return chosen.sort().values


def hide(labels: Tensor, sizes: Sequence[int], observed: float, seed: int) -> Tensor:
    """Replace labels by NaN at random, independently per label and image; each image keeps at least one.

    Args:
        labels: Concatenated labels, (N, Σ sizes); NaN if already unknown.
        sizes: Columns of each label.
        observed: Share of labels to keep.
        seed: Equal seeds hide equal labels on every machine.
    """
    if observed == 1 or not labels.numel():
        return labels
    chance = torch.rand(len(labels), len(sizes), generator=torch.Generator().manual_seed(seed))
    first = torch.tensor([0, *sizes[:-1]]).cumsum(0)  # column of each label
    chance = chance.masked_fill(labels[:, first].isnan(), torch.inf)  # the one that stays is a known one
    known = (chance < observed) | (chance == chance.min(1, keepdim=True).values)
    columns = known.repeat_interleave(torch.tensor(sizes), dim=1)
    return labels.masked_fill(~columns, torch.nan)
