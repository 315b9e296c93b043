"""Number the values of a factor, numbers or names, for scores."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 20
"""Most different numbers of a factor that stay apart by default."""


def factor_places(column: NDArray[Any], categorical: bool = False, bins: int = BINS) -> tuple[int, NDArray[np.float64]]:
    """Number the values of a factor.

    A place is the index of a value in alphabetical or increasing order. An ordered factor with more than `bins`
    distinct values is measured in equal-width bins, as in `numpy.histogram`: 3.7 lies in bin 3.

    Args:
        column: Observed values (N,), numbers or strings.
        categorical: Whether numbers are categories, which are never binned.
        bins: Largest number of distinct values without binning.

    Returns:
        Number of values or bins, and the place of each row (N,).
    """
    values, index = np.unique(column, return_inverse=True)
    if categorical or column.dtype.kind in "US" or len(values) <= bins:
        return len(values), index.reshape(-1).astype(np.float64)
    scaled = (column - values[0]) / (values[-1] - values[0])
    # The greatest value belongs to the last bin; single precision must keep it there.
    return bins, np.minimum(scaled * bins, np.nextafter(np.float32(bins), np.float32(0))).astype(np.float64)
