"""Adds what later commands find out to the run on Weights & Biases that trained a checkpoint."""

import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vaezoo.metrics.protocols import EvaluationData
from vaezoo.runs.additions import Additions
from vaezoo.runs.folder import RunFolder
from vaezoo.text import printable, reason
from vaezoo.tracking.artifacts import stored_files
from vaezoo.tracking.notes import nameless_arguments, read_note
from vaezoo.tracking.tables import image_table, score_table, scores_of_evaluation
from vaezoo.tracking.wandb import STEP, can_log_in
from vaezoo.tracking.wandb_private import NAMELESS, local_summary, waits_for_sync

_SETTINGS = {"init_timeout": 10.0, "finish_timeout": 60.0, "reinit": "create_new", "console": "off", "silent": True}


def add_to_run(found: Additions) -> None:
    """Add scores, pictures and files to the run that trained a checkpoint; nothing where it has none on W&B.

    The run goes on offline where it was trained offline and is not synced yet, or where login or network is missing.
    Whatever fails is one line: the command itself has done its work.

    Args:
        found: What to add.
    """
    folder = RunFolder.of(found.checkpoint)
    if not (note := read_note(folder)):
        return
    place = f"{found.command}/{found.checkpoint.stem}"

    def add(run: Any) -> None:
        row = {**_scores(found, place), **_tables(found, place, folder.title)}
        row |= changed_pictures(found.pictures, place, run)
        if row:
            run.log({**row, STEP: int(found.model.step)})
        if found.files:
            name = f"{found.command}-{run.id}"
            run.log_artifact(stored_files(name, found.command, found.files, folder), aliases=[found.checkpoint.stem])

    join_run(folder.path, note, add)


def join_run(folder: Path, note: Mapping[str, Any], add: Callable[[Any], None]) -> None:
    """Go on with a run that already exists, online where that is possible; whatever fails is a warning.

    Args:
        folder: Where its files go.
        note: What it noted about itself.
        add: Logs to the run.
    """
    before = os.environ.get("WANDB_DATA_DIR")
    os.environ["WANDB_DATA_DIR"] = str(folder / "wandb")  # copies of what is to be uploaded: beside the run
    try:
        with nameless_arguments():
            run = _resumed(folder, note)
        if run.disabled:
            return
        try:
            add(run)
        finally:
            run.finish(exit_code=0)
        print(printable(f"W&B: added to {run.name or run.id}{_how_to_sync(folder, run)}"))
    except Exception as error:
        _warn(f"nothing was added to the run on W&B: {reason(error)}")
    finally:
        os.environ.pop("WANDB_DATA_DIR")
        if before is not None:
            os.environ["WANDB_DATA_DIR"] = before


def _resumed(folder: Path, note: Mapping[str, Any]) -> Any:
    import wandb

    given = {name: note.get(name) for name in ("id", "entity", "project", "group", "name", "job_type")}
    given |= {"dir": os.path.relpath(folder), "resume": "allow", "settings": {**NAMELESS, **_SETTINGS}}
    if not waits_for_sync(folder) and can_log_in():
        try:
            return _nameless(wandb.init(**given))
        except Exception as error:  # a wrong key, no network, a server in trouble
            _warn(f"the W&B run continues offline: {reason(error)}")
    run = wandb.init(**given, mode="offline")
    run.summary.update(local_summary(folder))
    return _nameless(run)


def _nameless(run: Any) -> Any:
    """Let artifacts of a session, tables among them, name files by paths from the current folder on."""
    log_artifact = run.log_artifact

    def log_nameless(artifact: Any, *args: Any, **options: Any) -> Any:
        for entry in artifact.manifest.entries.values():
            if entry.local_path is not None:
                entry.local_path = os.path.relpath(entry.local_path)
        return log_artifact(artifact, *args, **options)

    run.log_artifact = log_nameless
    return run


def _scores(found: Additions, place: str) -> dict[str, float]:
    """Scores by place and name, the ends of their intervals as `/low` and `/high`."""
    scores = scores_of_evaluation(found.scores) if found.scores else {}
    flat = {
        f"{place}/{name}{end}": value
        for name, ends in scores.items()
        for end, value in zip(("", "/low", "/high"), ends, strict=True)
    }
    return {name: value for name, value in flat.items() if value is not None}


def _tables(found: Additions, place: str, title: str) -> dict[str, Any]:
    tables = {}
    if found.scores is not None:
        tables[f"{place}/scores"] = score_table({title: scores_of_evaluation(found.scores)})
    if isinstance(found.data, EvaluationData):
        tables[f"{place}/images"] = image_table(found.model, found.data, found.split, found.seed)
    return tables


def changed_pictures(paths: Mapping[str, Path], place: str, run: Any) -> dict[str, Any]:
    """Pictures for W&B, but those that the run has as they are: none is stored twice.

    Args:
        paths: PNG and GIF files, by name.
        place: What comes before their names.
        run: The run.
    """
    import wandb

    media = {}
    for name, path in paths.items():
        key = f"{place}/{name.removesuffix('.png')}"
        if (run.summary.get(key) or {}).get("sha256") != hashlib.sha256(path.read_bytes()).hexdigest():
            media[key] = wandb.Video(str(path), format="gif") if path.suffix == ".gif" else wandb.Image(str(path))
    return media


def _how_to_sync(folder: Path, run: Any) -> str:
    return f" offline; `wandb sync {folder}/wandb/offline-run-*` uploads it" if run.offline else ""


def _warn(line: str) -> None:
    print(f"vaezoo: warning: {printable(' '.join(line.split()))}", file=sys.stderr)
