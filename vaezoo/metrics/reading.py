"""Values of a batch that scores read: factors here, codes and the rest in subclasses."""

import inspect
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from vaezoo.metrics.base import FittedMetric, ScoreMetric
from vaezoo.metrics.protocols import NamesFactors


class Reading:
    """A batch as scores read it.

    Args:
        factors: Factors (B, K): indices, -1 if unknown. Binned factors are measured in bins: 3.7 lies in bin 3, so
            scores that need no bins lose nothing.
        data: Describes the factors; None if labels serve as factors.
    """

    def __init__(self, factors: Tensor, data: NamesFactors | None) -> None:
        self._factors, self._names = factors, data

    @property
    def factor_values(self) -> Tensor:
        """Factors without binning, (B, K)."""
        if not self._factors.shape[1]:
            raise ValueError("the data has no factors to compare codes with")
        return self._factors

    @property
    def factors(self) -> Tensor:
        """Factors as indices, (B, K); the labels if there is no datamodule."""
        return self.factor_values if self._names is None else as_indices(self.factor_values)

    @property
    def classes(self) -> Tensor:
        """The first categorical factor, (B,)."""
        columns = categorical(self._names)
        if not columns:
            raise ValueError("the data has no categorical factor to compare classes with")
        return self.factors[:, columns[0]]

    def known(self, reads: Sequence[str]) -> Tensor:
        """Mask of images with all values that a score reads, (B,) bool."""
        known = torch.ones(len(self._factors), dtype=torch.bool, device=self._factors.device)
        if self._names is not None and {"factors", "factor_values"} & set(reads):
            known &= (self._factors >= 0).all(1)
        if self._names is not None and "classes" in reads:
            known &= self.classes >= 0
        return known

    @property
    def positions(self) -> Tensor:
        """Row and column of a blob, (B, 2)."""
        names = self._names.factor_names if self._names is not None else ()
        if not {"row", "column"} <= set(names):
            raise ValueError(f"the data has no factors row and column, only {', '.join(names) or 'labels'}")
        return self.factors[:, [names.index("row"), names.index("column")]]

    def values(self, metric: Metric) -> list[Tensor]:
        """What a score reads of the batch, without images of unknown values."""
        reads = metric.reads if isinstance(metric, ScoreMetric) else ScoreMetric.reads
        tables = [getattr(self, name) for name in reads]
        known = self.known(reads)
        return tables if known.all() else [table[known] for table in tables]

    def update(self, metric: Metric, training: bool = False) -> None:
        """Add the batch to a score, as `add` does."""
        add(metric, self.values(metric), training)


def add(metric: Metric, values: Sequence[Tensor], training: bool = False) -> None:
    """Add what a score reads of a batch to it; training images go to its training rows."""
    metric.update(*values, **({"training": training} if isinstance(metric, FittedMetric) else {}))


def as_indices(factors: Tensor) -> Tensor:
    """Factors (B, K) as indices: the bins of those that were binned."""
    return factors.floor().long() if factors.is_floating_point() else factors


def categorical(data: NamesFactors | None) -> tuple[int, ...]:
    """Columns of the factors that are categories."""
    return tuple(k for k, kind in enumerate(data.factor_kinds if data is not None else ()) if kind == "categorical")


def bind_known(metric: Metric, **known: tuple[Any, ...]) -> None:
    """Set score arguments that follow from model and data, unless already given.

    Args:
        metric: A metric of `vaezoo.metrics`; any other metric stays unchanged.
        known: Arguments by name, e.g. the class counts of the discrete latents.
    """
    if isinstance(metric, ScoreMetric):
        arguments = inspect.signature(metric.score).parameters
        empty = {name for name, argument in arguments.items() if argument.default == ()}
        metric.score = partial(metric.score, **{name: value for name, value in known.items() if name in empty})
