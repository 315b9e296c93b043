"""Read back what W&B wrote offline: its log of records, framed as LevelDB frames logs, in its own protobuf."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from wandb.proto.wandb_internal_pb2 import Record, RunRecord

BLOCK = 32768


class Recorded(NamedTuple):
    run: RunRecord
    config: dict[str, Any]
    tags: set[str]
    history: list[dict[str, Any]]
    summary: dict[str, Any]


def records(path: Path) -> Iterator[Record]:
    data, at, parts = path.read_bytes(), 7, b""  # W&B's own header has 7 bytes
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:  # no room for a header: the block ends in zeros
            at += BLOCK - at % BLOCK
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]  # after a checksum
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield Record.FromString(parts)
            parts = b""


def read(folder: Path) -> Recorded:
    """The one run recorded in a run's folder."""
    (path,) = (folder / "wandb").glob("offline-run-*/run-*.wandb")
    found = list(records(path))
    runs = [record.run for record in found if record.HasField("run")]
    config = _merged(update for r in found if r.HasField("config") for update in r.config.update)
    summary = _merged(update for r in found if r.HasField("summary") for update in r.summary.update)
    history = [_merged(record.history.item) for record in found if record.HasField("history")]
    return Recorded(runs[-1], config, {tag for run in runs for tag in run.tags}, history, summary)


def _merged(updates: Iterable[Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for update in updates:
        place, *path = update.nested_key or [update.key]
        value = json.loads(update.value_json)
        for name in reversed(path):
            value = {name: value}
        merged[place] = {**merged.get(place, {}), **value} if path else value
    return merged
