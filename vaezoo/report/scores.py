"""Scores of a run: those that `vaezoo evaluate` left beside its checkpoints, and the last ones logged."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaezoo.metrics.catalogue import DETAIL
from vaezoo.report.logs import Curve


@dataclass
class Score:
    """A value with its interval, where there is one.

    Attributes:
        value: The score.
        low: Lower end of the interval.
        high: Upper end.
        main: Whether to show it before anyone asks.
        about: What it is, for the reader.
    """

    value: float
    low: float | None = None
    high: float | None = None
    main: bool = True
    about: str = ""


def read_scores(files: Sequence[Path], checkpoint: Path | None) -> tuple[dict[str, Score], str]:
    """Scores that `vaezoo evaluate` left in files beside checkpoints, and what they were computed on.

    Where there are several, that of the checkpoint which the report draws counts, then the newest.
    """
    read = [(file, json.loads(file.read_text(encoding="utf-8"))) for file in files]
    read = [(file, content) for file, content in read if isinstance(content, dict)]
    if not read:
        return {}, ""
    drawn = checkpoint.name if checkpoint else ""
    _, content = max(read, key=lambda pair: (pair[1].get("checkpoint") == drawn, pair[0].stat().st_mtime))
    scores: dict[str, Score] = {}
    for metric, result in _mapping(content.get("metrics")).items():
        for i, (name, entry) in enumerate(_mapping(_mapping(result).get("scores")).items()):
            if (score := _score(entry)) is not None:
                score.main = i == 0 or not DETAIL.search(str(name))
                score.about = str(_mapping(result).get("definition") or metric)
                scores[str(name)] = score
    data = _mapping(content.get("data"))
    parts = [content.get("checkpoint"), f"{content.get('images', 'some')} images", data.get("split")]
    return scores, ", ".join(str(part) for part in parts if part)


def last_values(curves: Mapping[str, Curve]) -> dict[str, Score]:
    """The last logged validation values, or training values where nothing was validated."""
    stage = "val/" if any(name.startswith("val/") for name in curves) else "train/"
    about = "last value that was logged"
    return {
        name: Score(curve.last, main=name.count("/") == 1, about=about)
        for name, curve in curves.items()
        if name.startswith(stage)
    }


def _score(entry: Any) -> Score | None:
    """A score from {"value", "low", "high"} or a bare number; None for anything else."""
    entry = entry if isinstance(entry, dict) else {"value": entry}
    try:
        low, high = (None if entry.get(end) is None else float(entry[end]) for end in ("low", "high"))
        return Score(float(entry["value"]), low, high)  # float reads "inf" as well
    except (KeyError, TypeError, ValueError):
        return None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
