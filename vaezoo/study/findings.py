"""What a study leaves, for whoever tracks its runs."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vaezoo.runs.folder import scores_of
from vaezoo.study.folder import JobFolder

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

    def scores(self) -> dict[str, dict[str, tuple[float, float | None, float | None]]]:
        """Scores of the runs with the ends of their intervals, from the files beside the checkpoints."""
        found: dict[str, dict[str, tuple[float, float | None, float | None]]] = {}
        for name, checkpoint in self.checkpoints.items():
            metrics = json.loads(scores_of(checkpoint).read_text())["metrics"].values()
            scores = {score: ends for metric in metrics for score, ends in metric["scores"].items()}
            found[name] = {key: (float(v["value"]), v.get("low"), v.get("high")) for key, v in scores.items()}
        return found


TrackStudy = Callable[[StudyFindings], None]
"""Adds them to a run of the study on its tracker, where its runs are tracked; never raises."""
