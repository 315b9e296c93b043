"""Ground-truth factors: names, indices and labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import one_hot

FactorKind = Literal["categorical", "ordered", "periodic"]
LabelForm = Literal["rank", "index", "onehot"]


@dataclass(frozen=True)
class Factor:
    """One factor of variation.

    Attributes:
        name: Name in configurations and figures.
        size: Number of values it takes.
        kind: "categorical", "ordered", or "periodic" where the last value is next to the first.
    """

    name: str
    size: int
    kind: FactorKind = "ordered"


def choose(factors: Sequence[Factor], names: list[str] | None) -> tuple[Factor, ...]:
    """The factors with these names, in the order of the dataset. Defaults to all."""
    known = ", ".join(factor.name for factor in factors)
    if names is None:
        return tuple(factors)
    if not factors:
        raise ValueError(f"labelled_factors {', '.join(names)} not known: the data has no factors")
    if not names:
        raise ValueError(f"labelled_factors is empty; name some of {known}, or leave it out for all")
    if unknown := sorted(set(names) - {factor.name for factor in factors}):
        raise ValueError(f"labelled_factors {', '.join(unknown)} not known; choose from {known}")
    return tuple(factor for factor in factors if factor.name in names)


def unravel(ids: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Factor indices of grid points, the last factor changing fastest: (B,) to (B, K)."""
    strides, bounds = _grid(sizes, ids.device)
    return ids[:, None] // strides % bounds


def ravel(factors: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Grid points of factor indices: (B, K) to (B,)."""
    strides, bounds = _grid(sizes, factors.device)
    if factors.ndim != 2 or factors.shape[1] != len(sizes) or factors.is_floating_point():
        raise ValueError(f"factors must be integers (B, {len(sizes)}), not {factors.dtype} {tuple(factors.shape)}")
    if bool(((factors < 0) | (factors >= bounds)).any()):
        raise ValueError(f"factors must be indices from 0 to below {sizes}")
    return (factors * strides).sum(1)


@lru_cache
def _grid(sizes: tuple[int, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    """How far apart neighbours in each factor are, and how many values it has, (K,) each; kept, as every batch asks."""
    strides = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
    return torch.tensor(strides, device=device), torch.tensor(sizes, device=device)


def label(factors: Tensor, chosen: list[Factor], form: LabelForm) -> Tensor:
    """Labels from the indices of the chosen factors.

    Args:
        factors: Indices of the chosen factors, (B, K).
        chosen: The factors, in the same order.
        form: "rank" spreads each factor's values evenly over [0, 1]; "index" keeps the class index; "onehot" gives one
            column per class.

    Returns:
        (B, K), or (B, Σ sizes) for "onehot", float32.
    """
    if form == "index":
        return factors.float()
    if form == "rank":
        return factors / torch.tensor([max(factor.size - 1, 1) for factor in chosen])
    columns = [one_hot(factors[:, i], factor.size).float() for i, factor in enumerate(chosen)]
    return torch.cat([factors[:, :0].float(), *columns], dim=1)  # there may be no factor at all


class Factored:
    """Images described by factors, and labels made from some of them."""

    factors: Sequence[Factor]
    labelled_factors: tuple[Factor, ...]
    """Factors that labels hold."""
    label_form: LabelForm

    @property
    def factor_names(self) -> tuple[str, ...]:
        """Names of the factors, in the order of their indices."""
        return tuple(factor.name for factor in self.factors)

    @property
    def factor_sizes(self) -> tuple[int, ...]:
        """Number of values of each factor."""
        return tuple(factor.size for factor in self.factors)

    @property
    def factor_kinds(self) -> tuple[FactorKind, ...]:
        """Kind of each factor."""
        return tuple(factor.kind for factor in self.factors)

    @property
    def labelled_names(self) -> tuple[str, ...]:
        """Names of the factors that labels hold."""
        return tuple(factor.name for factor in self.labelled_factors)

    @property
    def label_size(self) -> int:
        """Width of a label."""
        return sum(self.label_sizes) or len(self.labelled_factors)

    @property
    def label_sizes(self) -> tuple[int, ...]:
        """Number of classes of each one-hot part of a label; empty for other forms."""
        return tuple(factor.size for factor in self.labelled_factors) if self.label_form == "onehot" else ()

    def factors_of(self, ids: Tensor) -> Tensor:
        """Factor indices of images by id, (B, K); -1 if unknown."""
        raise NotImplementedError

    def values_of(self, ids: Tensor) -> Tensor:
        """Factor values for scores, by image id, (B, K): indices, or positions in bins (3.7 lies in bin 3)."""
        return self.factors_of(ids)

    def with_labels(self, ids: Tensor) -> Tensor:
        """The given images that have a label."""
        return ids if self.label_size else ids[:0]

    def labels_of(self, ids: Tensor) -> Tensor:
        """Labels of images by id, (B, label_size)."""
        columns = [self.factor_names.index(factor.name) for factor in self.labelled_factors]
        return label(self.factors_of(ids)[:, columns], list(self.labelled_factors), self.label_form)

    def cells_of(self, ids: Tensor) -> Tensor:
        """Cells for balancing the labelled set: the classes of the labelled factors, (B,)."""
        columns = [self.factor_names.index(factor.name) for factor in self.labelled_factors]
        return ravel(self.factors_of(ids)[:, columns], tuple(factor.size for factor in self.labelled_factors))
