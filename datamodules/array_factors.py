"""Factors beside an array of images: their values, names and kinds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from datamodules.array_files import MissingArrayError, stored_array
from datamodules.factor_table import Column
from datamodules.factors import FactorKind
from datamodules.table_files import SUFFIXES, read_table, typed

FACTORS, NAMES, KINDS = "factors", "factor_names", "factor_kinds"


class StoredFactors(NamedTuple):
    """Factors as stored.

    Attributes:
        columns: Cells by factor name.
        kinds: Kinds by factor name, where given.
    """

    columns: dict[str, Column]
    kinds: dict[str, FactorKind]


def read_factors(
    file: Path,
    own: Path | None,
    key: str | None = None,
    names: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
) -> StoredFactors:
    """Read the factors of images; empty if there are none.

    Args:
        file: The file of the images.
        own: A separate file of factors, if any.
        key: Name of the array of factors, if given.
        names: Names of the factors, if given.
        kinds: Their kinds, if given.

    Raises:
        FileNotFoundError: A file is missing.
        MissingArrayError: The named array is missing.
        ValueError: They cannot be read, or names and kinds do not match.
    """
    if own is not None and own.suffix.lower() in SUFFIXES:
        table = read_table(own, "factors_file")
        columns = {name: typed(name, cells, f"factors_file {own}") for name, cells in table.items()}
        return StoredFactors(columns, _kinds(list(columns), kinds))
    if own is None and file.suffix.lower() == ".npy" and key is None:
        return StoredFactors({}, {})  # it holds the images alone
    holder = own or file
    values = _array(holder, key or FACTORS, needed=key is not None or own is not None)
    if values is None:
        return StoredFactors({}, {})
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.dtype.kind not in "biufU":
        raise ValueError(f"{holder}: factors are {values.dtype} {values.shape}: give numbers or text, (N, K)")
    named = list(names or _texts(holder, NAMES) or (f"factor{k}" for k in range(values.shape[1])))
    if len(set(named)) != values.shape[1] or len(named) != values.shape[1]:
        raise ValueError(f"factor_names must name each of {values.shape[1]} factors once, not {', '.join(named)}")
    cells = values if values.dtype.kind == "U" else values.astype(np.float64)
    columns = {name: cells[:, k] for k, name in enumerate(named)}
    return StoredFactors(columns, _kinds(named, kinds or _texts(holder, KINDS)))


def _kinds(names: Sequence[str], kinds: Sequence[str] | None) -> dict[str, FactorKind]:
    known = get_args(FactorKind)
    if kinds and (len(kinds) != len(names) or set(kinds) - set(known)):
        raise ValueError(
            f"factor_kinds must be one of {', '.join(known)} for each of {len(names)} factors, not {', '.join(kinds)}"
        )
    return dict(zip(names, kinds or (), strict=False))  # type: ignore[arg-type]  # they are known ones


def _texts(file: Path, key: str) -> list[str]:
    found = None if file.suffix.lower() == ".npy" else _array(file, key, needed=False)
    return [] if found is None else [str(text) for text in found.reshape(-1)]


def _array(file: Path, key: str, needed: bool) -> NDArray[Any] | None:
    try:
        with stored_array(file, key) as array:
            return array.rows(0, array.shape[0])
    except MissingArrayError:
        if needed:
            raise
        return None
