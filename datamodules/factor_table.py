"""Factors of any images, read from a table: numbers, names of classes, and cells that nobody has filled in."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from datamodules.factors import Factor

Column = NDArray[Any]
"""Cells of one factor, (N,): floats, NaN where not observed, or strings, empty where not observed."""
BINS = 20


class FactorTable(NamedTuple):
    """Factors of images, one row each.

    Attributes:
        factors: What the columns are.
        places: Index of each value, or its place counted in bins: 3.7 lies in bin 3; -1 where not observed, (N, K).
        labels: Each value scaled to [0, 1]; NaN where not observed, (N, K).
    """

    factors: tuple[Factor, ...]
    places: Tensor
    labels: Tensor

    @classmethod
    def of(
        cls, columns: Mapping[str, Column], rows: int, categorical: Sequence[str] = (), bins: int = BINS
    ) -> "FactorTable":
        """Number the values of columns.

        Strings are categories in alphabetical order. Numbers are ordered; labels keep them as they are, scaled from
        their least and greatest to [0, 1]. Scores read the index of a number, or its bin of one width where a column
        has more than `bins` different numbers.

        Args:
            columns: Cells by name of the factor.
            rows: Number of images.
            categorical: Columns of numbers that are categories.
            bins: Most values that stay apart.
        """
        if bins < 2:
            raise ValueError(f"factor_bins must be 2 or more, not {bins}")
        if unknown := [name for name in categorical if name not in columns]:
            raise ValueError(f"categorical names {unknown[0]}, but the factors are {', '.join(columns) or 'none'}")
        places, labels = torch.full((rows, len(columns)), -1.0), torch.full((rows, len(columns)), torch.nan)
        factors = []
        for k, (name, column) in enumerate(columns.items()):
            known = column != "" if column.dtype.kind == "U" else ~np.isnan(column)
            if not known.any():
                raise ValueError(f"factor {name} has no value in any row: fill some in, or leave it out")
            factor, place, label = _numbered(name, column[known], name in categorical, bins)
            factors.append(factor)
            places[torch.from_numpy(known), k] = torch.from_numpy(place.astype(np.float32))
            labels[torch.from_numpy(known), k] = torch.from_numpy(label.astype(np.float32))
        return cls(tuple(factors), places, labels)

    def at(self, rows: Tensor) -> "FactorTable":
        """Some of the images."""
        return FactorTable(self.factors, self.places[rows], self.labels[rows])


def _numbered(name: str, column: Column, categorical: bool, bins: int) -> tuple[Factor, Column, Column]:
    """A factor, and the place and the label of each of its values, (N,) each."""
    values, index = np.unique(column, return_inverse=True)
    last = max(len(values) - 1, 1)
    if categorical or column.dtype.kind == "U":
        return Factor(name, len(values), "categorical"), index, index / last
    scaled = (column - values[0]) / ((values[-1] - values[0]) or 1.0)
    if len(values) <= bins:
        return Factor(name, len(values)), index, scaled
    # The greatest value belongs to the last bin, as numpy.histogram has it.
    return (
        Factor(name, bins),
        np.minimum(np.float32(scaled * bins), np.nextafter(np.float32(bins), np.float32(0))),
        scaled,
    )
