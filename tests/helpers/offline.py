"""Read back what W&B wrote offline."""

from pathlib import Path
from typing import Any, NamedTuple

from wandb.proto.wandb_internal_pb2 import RunRecord

from vaezoo.tracking.wandb_private import merged, records


class Recorded(NamedTuple):
    run: RunRecord
    config: dict[str, Any]
    tags: set[str]
    history: list[dict[str, Any]]
    summary: dict[str, Any]


def read(folder: Path) -> Recorded:
    """The first session of the run recorded in a run's folder."""
    (path, *_) = sorted((folder / "wandb").glob("offline-run-*/run-*.wandb"))
    return session(path)


def session(path: Path) -> Recorded:
    """One session of a run, by its file."""
    found = list(records(path))
    runs = [record.run for record in found if record.HasField("run")]
    config = merged(update for r in found if r.HasField("config") for update in r.config.update)
    summary = merged(update for r in found if r.HasField("summary") for update in r.summary.update)
    history = [merged(record.history.item) for record in found if record.HasField("history")]
    return Recorded(runs[-1], config, {tag for run in runs for tag in run.tags}, history, summary)
