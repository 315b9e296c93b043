"""Read your own tables, CSV or Parquet, as columns of numbers and names."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from lightning.pytorch.utilities import rank_zero_warn

from datamodules.factor_table import Column

SUFFIXES = (".csv", ".parquet")
Cell = str | float


def read_table(path: Path, name: str) -> dict[str, list[Cell]]:
    """Cells of a table by column, as text; empty cells are empty strings.

    Args:
        path: A CSV file with a header line, or a Parquet file, which needs pyarrow.
        name: The argument to name in an error.

    Raises:
        FileNotFoundError: It is not there.
        ValueError: It cannot be read.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{name} {path} is no table: give a {' or '.join(SUFFIXES)} file")
    if not path.is_file():
        raise FileNotFoundError(f"{name} {path} is not there: paths start at the current folder")
    with _explained(path, name):
        return _csv(path) if path.suffix.lower() == ".csv" else _parquet(path)


def typed(key: str, cells: Sequence[Cell], where: str) -> Column:
    """A column as numbers, with NaN for empty cells, if all other cells are numbers; else as strings.

    Args:
        key: Name of the column.
        cells: Its cells; empty strings and NaN are not observed.
        where: The table, which an error names.

    Raises:
        ValueError: A number is infinite.
    """
    try:
        numbers = np.array([np.nan if cell == "" else float(cell) for cell in cells], dtype=np.float64)
    except ValueError:
        return np.array([str(cell) for cell in cells], dtype=np.str_)
    if (infinite := np.isinf(numbers)).any():
        row = int(infinite.argmax())
        raise ValueError(f"{where}: column {key} holds {cells[row]} in row {row + 1}: give a finite number or nothing")
    if nan := sum(cell != "" for cell in np.array(cells, dtype=object)[np.isnan(numbers)]):
        rank_zero_warn(f"{where}: {nan} cells of column {key} are NaN; they count as not observed, as empty ones do")
    return numbers


def _csv(path: Path) -> dict[str, list[Cell]]:
    with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets write a mark of the byte order
        lines = csv.reader(file, strict=True)
        header = [key.strip() for key in next(lines, [])]
        if not header or len(set(header)) < len(header) or "" in header:
            raise ValueError("its first line must name every column once")
        rows = list(_rows(lines, len(header)))
    return {key: [row[k].strip() for row in rows] for k, key in enumerate(header)}


def _rows(lines: Iterable[list[str]], width: int) -> Iterator[list[str]]:
    for number, row in enumerate(lines, start=2):
        if row and len(row) != width:
            raise ValueError(f"line {number} has {len(row)} cells, the first line {width}")
        if row:
            yield row


def _parquet(path: Path) -> dict[str, list[Cell]]:
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise ValueError("Parquet needs the package pyarrow: install it, or write the table as CSV") from error
    table = parquet.read_table(path)
    return {key: [_plain(cell) for cell in table[key].to_pylist()] for key in table.column_names}


def _plain(cell: object) -> Cell:
    """Numbers as they are, all else as text: true and false are names, as they are in CSV."""
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        return cell
    return "" if cell is None else str(cell)


@contextmanager
def _explained(path: Path, name: str) -> Iterator[None]:
    try:
        yield
    # pyarrow's own errors are kinds of ValueError, OSError and KeyError; those of csv are not.
    except (OSError, ValueError, LookupError, csv.Error, MemoryError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{name} {path} cannot be read ({reason}): give a CSV file with a header, or Parquet"
        ) from error
