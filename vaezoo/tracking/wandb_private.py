"""What depends on the inside of W&B's SDK: settings that it calls internal, and the format of its local files.

`tests/test_fences.py` and `tests/tracking/test_private.py` have a test of each.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

NAMELESS = {"host": "", "program": "vaezoo", "x_executable": "python"}
"""Settings that keep the machine's name, and paths that hold the user's, out of a run."""

_BLOCK, _HEADER = 32768, 7


def records(path: Path) -> Iterator[Any]:
    """The records of a run's local file, a log framed as LevelDB frames logs, of W&B's own protobuf messages.

    Args:
        path: `run-<id>.wandb`; where it was cut off, its records end.
    """
    from wandb.proto.wandb_internal_pb2 import Record  # type: ignore[attr-defined]  # generated

    data, at, parts = path.read_bytes(), _HEADER, b""  # W&B's own header is as long as LevelDB's
    while at + _HEADER <= len(data):
        if _BLOCK - at % _BLOCK < _HEADER:  # no room for a header: the block ends in zeros
            at += _BLOCK - at % _BLOCK
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]  # after a checksum
        parts += data[at + _HEADER : at + _HEADER + length]
        at += _HEADER + length
        if kind in (1, 4):  # whole, or the last part
            yield Record.FromString(parts)
            parts = b""


def merged(updates: Iterable[Any]) -> dict[str, Any]:
    """The values that updates of a summary, a configuration or a row of history leave."""
    found: dict[str, Any] = {}
    for update in updates:
        place, *path = update.nested_key or [update.key]
        value = json.loads(update.value_json)
        for name in reversed(path):
            value = {name: value}
        found[place] = {**found.get(place, {}), **value} if path else value
    return found


def sessions(folder: Path) -> list[Path]:
    """Local files of a run's sessions, the oldest first.

    Args:
        folder: The folder that was W&B's `dir`.
    """
    found = (path for path in (folder / "wandb").glob("*run-*/run-*.wandb") if "latest" not in path.parent.name)
    return sorted(found, key=lambda path: path.parent.name.removeprefix("offline-"))


def waits_for_sync(folder: Path) -> bool:
    """Whether a session was logged offline and not uploaded since."""
    offline = [path for path in sessions(folder) if path.parent.name.startswith("offline-")]
    return any(not path.with_name(f"{path.name}.synced").exists() for path in offline)


def local_summary(folder: Path) -> dict[str, Any]:
    """The summary that a run's sessions have left on this machine.

    `wandb sync` adds the history of a second offline session to that of the first, and puts its summary in the place of
    the first one's: a session must begin with it.
    """
    updates = (
        update
        for path in sessions(folder)
        for record in records(path)
        if record.HasField("summary")
        for update in record.summary.update
    )
    return {name: value for name, value in merged(updates).items() if not name.startswith("_")}
