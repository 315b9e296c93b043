"""Factors of any images, read from a table of numbers, class names and empty cells."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from datamodules.factors import Factor, FactorKind
from vaezoo.metrics.functional import places as numbering

Column = NDArray[Any]
"""Cells of one factor, (N,): floats, NaN where not observed, or strings, empty where not observed."""
BINS = numbering.BINS


class FactorTable(NamedTuple):
    """Factors of images, one row per image.

    Attributes:
        factors: What the columns are.
        places: Index of each value, or its position in bins: 3.7 lies in bin 3; -1 if unobserved, (N, K).
        labels: Each value scaled to [0, 1]; NaN if unobserved, (N, K).
    """

    factors: tuple[Factor, ...]
    places: Tensor
    labels: Tensor

    @classmethod
    def of(
        cls, columns: Mapping[str, Column], rows: int, kinds: Mapping[str, FactorKind] | None = None, bins: int = BINS
    ) -> "FactorTable":
        """Number the values of columns.

        Strings are categories in alphabetical order. Numbers are ordered; labels scale them linearly to [0, 1]. Scores
        read the index of a number, or its equal-width bin if a column has more than `bins` distinct values.

        Args:
            columns: Cells by factor name.
            rows: Number of images.
            kinds: Kinds of columns of numbers that are not ordered.
            bins: Largest number of distinct values without binning.
        """
        if bins < 2:
            raise ValueError(f"factor_bins must be 2 or more, not {bins}")
        kinds = kinds or {}
        if unknown := [name for name in kinds if name not in columns]:
            raise ValueError(f"there is no factor {unknown[0]} to call {kinds[unknown[0]]}, only {', '.join(columns)}")
        places, labels = torch.full((rows, len(columns)), -1.0), torch.full((rows, len(columns)), torch.nan)
        factors = []
        for k, (name, column) in enumerate(columns.items()):
            known = column != "" if column.dtype.kind == "U" else ~np.isnan(column)
            if not known.any():
                raise ValueError(f"factor {name} has no value in any row: fill some in, or leave it out")
            factor, place, label = _numbered(name, column[known], kinds.get(name, "ordered"), bins)
            factors.append(factor)
            places[torch.from_numpy(known), k] = torch.from_numpy(place.astype(np.float32))
            labels[torch.from_numpy(known), k] = torch.from_numpy(label.astype(np.float32))
        return cls(tuple(factors), places, labels)

    def at(self, rows: Tensor) -> "FactorTable":
        """Some of the images."""
        return FactorTable(self.factors, self.places[rows], self.labels[rows])


def _numbered(name: str, column: Column, kind: FactorKind, bins: int) -> tuple[Factor, Column, Column]:
    """A factor, and the place and the label of each of its values, (N,) each."""
    text = column.dtype.kind == "U"
    count, place = numbering.factor_places(column, kind == "categorical", bins)
    if text or kind == "categorical":
        return Factor(name, count, "categorical"), place, place / max(count - 1, 1)
    scaled = (column - column.min()) / (np.ptp(column) or 1.0)
    return Factor(name, count, kind), place, scaled
