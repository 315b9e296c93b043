"""Files of codes and factors that any program may write."""

import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CODES = "code"  # columns of a table that are codes begin with it
KEYS = ("codes", "factors", "factor_names", "factor_kinds", "discrete")
BESIDE = ("factor_bins", "ids", "unit_names")
"""What else `vaezoo predict` writes; scores read the bins of it."""
ReadTable = Callable[[Path, str], Mapping[str, Sequence[Any]]]
"""From a CSV or Parquet file, and the option to name in errors, to its cells column by column."""


class CodesFile(NamedTuple):
    """What a file of codes holds, as arguments of `vaezoo.metrics.evaluate`.

    Attributes:
        codes: Codes (N, D).
        factors: Factors (N, K), numbers or strings.
        factor_names: Their names. Defaults to factor_0, factor_1, …
        factor_kinds: Their kinds. Defaults to categorical for strings and ordered for numbers.
        discrete: Class counts of discrete latents, whose probabilities are the last columns of the codes.
        factor_bins: Bins for factors with more distinct values; None if the file does not say.
    """

    codes: NDArray[Any]
    factors: NDArray[Any]
    factor_names: tuple[str, ...] = ()
    factor_kinds: tuple[str, ...] = ()
    discrete: tuple[int, ...] = ()
    factor_bins: int | None = None


def read_codes(path: Path, read_table: ReadTable) -> CodesFile:
    """Read codes and factors; nothing in the file is executed.

    Args:
        path: An .npz file with `codes` and optionally `factors`, `factor_names`, `factor_kinds`, `discrete` and
            `factor_bins`, as `vaezoo predict` writes it; or a table with columns code…; all other columns are factors.
        read_table: Reads a table.

    Raises:
        FileNotFoundError: It is missing.
        ValueError: It holds something else.
    """
    if not path.is_file():
        raise FileNotFoundError(f"--codes {path} is not there: paths start at the current folder")
    return _npz(path) if path.suffix.lower() == ".npz" else _table(path, read_table)


def _npz(path: Path) -> CodesFile:
    try:
        with np.load(path, allow_pickle=False) as file:
            unknown = [key for key in file.files if key not in KEYS + BESIDE]
            if unknown or "codes" not in file.files:
                raise ValueError(f"it holds {', '.join(file.files) or 'nothing'}, not codes and {', '.join(KEYS[1:])}")
            found = {key: file[key] for key in file.files if key in (*KEYS, BESIDE[0])}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"--codes {path} cannot be read: {error}") from error
    codes, factors = found["codes"], found.get("factors", np.empty((len(found["codes"]), 0)))
    lists = {key: found[key].reshape(-1).tolist() for key in KEYS[2:] if key in found}
    bins = found["factor_bins"].item() if "factor_bins" in found else None
    return CodesFile(codes, factors, **{key: tuple(values) for key, values in lists.items()}, factor_bins=bins)


def _table(path: Path, read_table: ReadTable) -> CodesFile:
    columns = read_table(path, "--codes")
    codes = [name for name in columns if name.lower().startswith(CODES)]
    factors = [name for name in columns if name not in codes]
    if not codes:
        raise ValueError(f"--codes {path} has no column whose name begins with {CODES!r}, only {', '.join(factors)}")
    try:
        table = np.array([columns[name] for name in codes], dtype=np.float64).T
    except ValueError as error:
        raise ValueError(f"--codes {path}: a column of codes holds text ({error}): codes are numbers") from error
    values = np.array([list(map(str, columns[name])) for name in factors], dtype=np.str_).T
    return CodesFile(table, values.reshape(len(table), len(factors)), tuple(factors))
