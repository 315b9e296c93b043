"""Stateful metric classes: collect rows over batches and ranks, then call one pure function."""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from vaezoo.metrics.functional.pool import Pool, Scores


class ScoreMetric(Metric):
    """A score computed by a pure function.

    Args:
        score: Function of the collected tables.
    """

    is_differentiable = False
    higher_is_better: bool | None = True
    full_state_update = False
    reads: tuple[str, ...] = ("codes", "factors")
    """What an evaluation passes to `update`: names of attributes of `vaezoo.evaluation.Encoded`."""
    wants: int = 1000
    """Images below which an evaluation warns: scores that fit or count are biased there, means are only uncertain."""

    bootstrapped: bool = True
    """Whether it may have an interval: nearest neighbours mean nothing where resamples repeat rows."""

    def __init__(self, score: Callable[..., Scores]) -> None:
        super().__init__()
        self.score: Callable[..., Scores] = score

    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """Return all rows so far, as inputs of `score`."""
        raise NotImplementedError

    def test_pool(self) -> Pool | None:
        """Return the test rows of scores that are fitted on `tables`; None for other scores."""
        return None

    def scores(self) -> Scores:
        """Return the scores of all rows so far."""
        test = self.test_pool()
        return self.score(*self.tables()) if test is None else self.score(*self.tables(), test=test)

    def compute(self) -> dict[str, Tensor]:
        """Return the scores of all rows so far, float64 scalars on the CPU."""
        return as_tensors(self.scores())


class CodeMetric(ScoreMetric):
    """A score of codes alone.

    Args:
        score: Function of the codes (N, D).
    """

    higher_is_better: bool | None = False
    reads = ("codes",)
    codes: list[Tensor]

    def __init__(self, score: Callable[..., Scores]) -> None:
        super().__init__(score)
        self.add_state("codes", default=[], dist_reduce_fx="cat")

    def update(self, codes: Tensor, factors: Tensor | None = None) -> None:
        """Add a batch of codes (B, D). Factors are ignored; all scores share this signature."""
        self.codes.append(codes.detach())

    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """Return the codes so far."""
        return (as_array(self.codes),)


class PoolMetric(ScoreMetric):
    """A score of codes and factors.

    Args:
        score: Function of the codes (N, D) and the factors (N, K).
    """

    codes: list[Tensor]
    factors: list[Tensor]

    def __init__(self, score: Callable[..., Scores]) -> None:
        super().__init__(score)
        self.add_state("codes", default=[], dist_reduce_fx="cat")
        self.add_state("factors", default=[], dist_reduce_fx="cat")

    def update(self, codes: Tensor, factors: Tensor) -> None:
        """Add a batch of codes (B, D) and the factors (B, K) of the same examples."""
        if len(codes) != len(factors):
            raise ValueError(f"codes holds {len(codes)} rows and factors {len(factors)}: pass one row for each example")
        self.codes.append(codes.detach())
        self.factors.append(factors.detach())

    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """Return the codes and factors so far."""
        return as_array(self.codes), as_array(self.factors)


class FittedMetric(PoolMetric):
    """A score fitted on training images and scored on others; an evaluation encodes both.

    Args:
        score: Function of training codes (N, D) and factors (N, K), with the rows to score on as `test`.
    """

    training_codes: list[Tensor]
    training_factors: list[Tensor]

    def __init__(self, score: Callable[..., Scores]) -> None:
        super().__init__(score)
        self.add_state("training_codes", default=[], dist_reduce_fx="cat")
        self.add_state("training_factors", default=[], dist_reduce_fx="cat")

    def update(self, codes: Tensor, factors: Tensor, training: bool = False) -> None:
        """Add a batch of codes (B, D) and factors (B, K), either to score on or, from training images, to fit on."""
        if training:
            self.training_codes.append(codes.detach())
            self.training_factors.append(factors.detach())
        else:
            super().update(codes, factors)

    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """Return the codes and factors of training images so far."""
        if not len(self.training_codes):
            raise ValueError("there are no training images to fit on: call update with training=True")
        return as_array(self.training_codes), as_array(self.training_factors)

    def test_pool(self) -> Pool | None:
        """Return the codes and factors to score on so far."""
        return as_array(self.codes), as_array(self.factors)


def as_array(batches: list[Tensor] | Tensor) -> NDArray[np.float64]:
    """Join batches, a list or a gathered tensor, into one float64 array."""
    if not len(batches):
        raise ValueError("there are no rows to score: call update first")
    return np.asarray(dim_zero_cat(batches).cpu().double().numpy())


def as_tensors(scores: Scores) -> dict[str, Tensor]:
    """Convert named floats to named scalar tensors."""
    return {name: torch.tensor(score, dtype=torch.float64) for name, score in scores.items()}
