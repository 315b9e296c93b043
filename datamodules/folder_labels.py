"""Labels of image files: a table matched with the files, or the names of subfolders."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from datamodules.factor_table import Column
from datamodules.table_files import Cell, read_table, typed

TRAIN = "train"
SPLIT = "split"
PARTS = {"": 0, TRAIN: 0, "val": 1, "validation": 1, "test": 2}


class FolderLabels(NamedTuple):
    """Labels and splits of images, in the order of their ids.

    Attributes:
        columns: Cells of each factor.
        parts: 0, 1 or 2 for training, validation and test images, (N,). None if there is no split.
    """

    columns: dict[str, Column]
    parts: Tensor | None


def class_names(names: Sequence[str], folder: Path) -> Column:
    """The first subfolder of each picture, (N,).

    Raises:
        ValueError: A picture lies in no subfolder.
    """
    if outside := [name for name in names if "/" not in name]:
        raise ValueError(
            f"folder_classes: {folder / outside[0]} lies in no subfolder of {folder}: move it to its class's folder"
        )
    return np.array([name.partition("/")[0] for name in names], dtype=np.str_)


def read_labels(
    path: Path, folder: Path, names: Sequence[str], file_column: str, factor_columns: Sequence[str] | None
) -> FolderLabels:
    """Read a table and bring its lines into the order of the pictures.

    Args:
        path: The table.
        folder: Folder of the pictures.
        names: Their paths below it.
        file_column: Column that names a file.
        factor_columns: Columns to use as factors. Defaults to all others.

    Raises:
        FileNotFoundError: The table is missing.
        ValueError: It cannot be read or lacks a column; or a line names no file, the same file as another line, or an
            ambiguous one.
    """
    table = read_table(path, "labels_file")
    for column in (file_column, *(factor_columns or ())):
        if column not in table:
            raise ValueError(f"labels_file {path} has no column {column}, only {', '.join(table)}: name it there")
    chosen = factor_columns or [column for column in table if column not in (file_column, SPLIT)]
    rows = _rows([str(cell) for cell in table[file_column]], names, path, folder)
    columns = {}
    for column in chosen:
        cells = typed(column, table[column], f"labels_file {path}")
        columns[column] = np.full(len(names), "" if cells.dtype.kind == "U" else np.nan, dtype=cells.dtype)
        columns[column][rows] = cells
    if SPLIT not in table or SPLIT in chosen:
        return FolderLabels(columns, None)
    parts = torch.zeros(len(names), dtype=torch.long)
    parts[torch.from_numpy(rows)] = torch.tensor([_part(cell, path, i) for i, cell in enumerate(table[SPLIT])])
    return FolderLabels(columns, parts)


def _rows(files: Sequence[str], names: Sequence[str], path: Path, folder: Path) -> np.ndarray:
    """Place of each line's file among the pictures, (lines,)."""
    places = {name: i for i, name in enumerate(names)}
    bare = {name.rpartition("/")[2]: i for i, name in enumerate(names)}  # good for names that occur once
    often = Counter(name.rpartition("/")[2] for name in names)
    seen: dict[int, int] = {}
    for row, file in enumerate(files, start=1):
        file = file.removeprefix("./")
        if file not in places and often[file] > 1:
            first, second, *_ = (name for name in names if name.rpartition("/")[2] == file)
            raise ValueError(
                f"labels_file {path}: row {row} names {file}, which may be {first} or {second}: give its path "
                f"below {folder}"
            )
        place = places.get(file, bare.get(file))
        if place is None:
            raise ValueError(
                f"labels_file {path}: row {row} names {file or 'no file'}, and {folder} holds no such picture: correct "
                "the row or remove it"
            )
        if place in seen:
            raise ValueError(f"labels_file {path}: rows {seen[place]} and {row} both name {file}: remove one")
        seen[place] = row
    if not seen:
        raise ValueError(f"labels_file {path} has no rows: give one for each picture that has labels")
    return np.array(list(seen), dtype=np.int64)


def _part(cell: Cell, path: Path, row: int) -> int:
    if str(cell).lower() not in PARTS:
        raise ValueError(f"labels_file {path}: row {row + 1} has {cell} as split: give train, val or test, or nothing")
    return PARTS[str(cell).lower()]
