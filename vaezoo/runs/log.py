"""The run's CSV log, one row per step; it survives kills and full disks."""

import csv
import io
import os
import warnings
from collections.abc import Iterable, Mapping
from errno import ENOSPC
from pathlib import Path
from typing import Any

from lightning.fabric.loggers.logger import rank_zero_experiment
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.loggers.csv_logs import ExperimentWriter

from vaezoo.runs.files import atomic_write


class RunLog(CSVLogger):
    """Lightning's CSV log, without losing written rows.

    Lightning empties and rewrites the file for each new column, e.g. at the first validation; a kill or a full disk
    there loses the log. Here a complete new file replaces the old one, and a partial row is removed. Each row is
    written to disk at once.

    Args:
        folder: Folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder.parent.parent, folder.parent.name, folder.name, flush_logs_every_n_steps=1)
        self._rows: RowWriter | None = None

    @property
    @rank_zero_experiment
    def experiment(self) -> ExperimentWriter:
        """The writer, on the first rank; elsewhere one that does nothing."""
        if self._rows is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what lies in the folder, which is new: files of other loggers
                self._rows = RowWriter(self.log_dir)
        return self._rows

    def finalize(self, status: str) -> None:
        """Write what is left; nothing where nothing was logged."""
        if self._rows is not None:
            self._rows.save()


class RowWriter(ExperimentWriter):
    """Appends rows; a new column writes the file anew, in one step."""

    def save(self) -> None:
        """Write the rows that were logged since the last time."""
        rows, self.metrics = self.metrics, []
        if not rows:
            return
        columns = sorted({*self.metrics_keys}.union(*rows))
        file = Path(self.metrics_file_path)
        if columns != self.metrics_keys:
            self._widen(file, columns)
            self.metrics_keys = columns
        _append(file, _lines(columns, rows))

    def _widen(self, file: Path, columns: list[str]) -> None:
        with atomic_write(file) as draft, draft.open("w", newline="", encoding="utf-8") as new:
            csv.DictWriter(new, columns).writeheader()
            if file.is_file():
                with file.open(newline="", encoding="utf-8") as old:
                    csv.DictWriter(new, columns).writerows(csv.DictReader(old))


def _lines(columns: list[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.DictWriter(text, columns).writerows(rows)
    return text.getvalue().encode()


def _append(file: Path, lines: bytes) -> None:
    """Add whole lines or nothing: a kill cannot come between the bytes of one short write."""
    with file.open("ab", buffering=0) as log:
        size = log.seek(0, os.SEEK_END)
        try:
            if log.write(lines) < len(lines):
                raise OSError(ENOSPC, os.strerror(ENOSPC))
        except OSError as error:
            log.truncate(size)
            raise OSError(error.errno, error.strerror, str(file)) from error
