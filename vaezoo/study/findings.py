"""What a study leaves, for whoever tracks its runs."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vaezoo.metrics.catalogue import DETAIL
from vaezoo.runs.folder import scores_of
from vaezoo.study.folder import JobFolder

Score = tuple[float, float | None, float | None]
"""A value, and the ends of its interval where it has one."""
FILES = ("results.csv", "results.parquet", "summary.md", "summary.tex")


@dataclass(frozen=True)
class StudyFindings:
    """Results of a study's finished runs.

    Attributes:
        title: Name and budget.
        folder: Folder of the study.
        checkpoints: The checkpoint of each run that was scored, by the run's name.
        files: Tables.
        plots: PNG files.
    """

    title: str
    folder: Path
    checkpoints: Mapping[str, Path]
    files: Sequence[Path]
    plots: Sequence[Path]

    @classmethod
    def read(cls, folder: Path) -> "StudyFindings":
        """The results in a study's folder.

        Raises:
            FileNotFoundError: It holds no finished run of a study.
        """
        results = [JobFolder(path).read("result.json") for path in sorted((folder / "runs").glob("*/"))]
        checkpoints = {result["run"]: folder / result["checkpoint"] for result in results if result}
        if not checkpoints:
            raise FileNotFoundError(f"no finished run of a study in {folder}: give a folder that `vaezoo study` wrote")
        files = [path for path in sorted(folder.glob("*")) if path.name in FILES]
        return cls(folder.resolve().name, folder, checkpoints, files, sorted((folder / "plots").glob("*.png")))

    def scores(self) -> dict[str, dict[str, Score]]:
        """Scores of the runs by name, from the files beside the checkpoints."""
        return {
            run: {name: score for scores in metrics.values() for name, score in scores.items()}
            for run, metrics in self._metrics().items()
        }

    def main_scores(self) -> dict[str, list[str]]:
        """Names of each run's scores that are no detail of a metric."""
        return {
            run: [
                name
                for scores in metrics.values()
                for number, name in enumerate(scores)
                if not number or not DETAIL.search(name)
            ]
            for run, metrics in self._metrics().items()
        }

    def _metrics(self) -> dict[str, dict[str, dict[str, Score]]]:
        found = {}
        for run, checkpoint in self.checkpoints.items():
            metrics = json.loads(scores_of(checkpoint).read_text())["metrics"]
            found[run] = {
                metric: {name: _score(**ends) for name, ends in content["scores"].items()}
                for metric, content in metrics.items()
            }
        return found


def _score(value: float | str, low: float | str | None = None, high: float | str | None = None) -> Score:
    """A score of a JSON file, where NaN and infinity are strings."""
    return (float(value), None if low is None else float(low), None if high is None else float(high))


TrackStudy = Callable[[StudyFindings], None]
"""Adds them to a run of the study on its tracker, where its runs are tracked; never raises."""
