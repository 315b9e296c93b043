"""A study on Weights & Biases: one run of its own with the table of all scores, beside the runs that it trained."""

from typing import Any
from uuid import uuid4

from vaezoo.runs.folder import RunFolder
from vaezoo.study.findings import StudyFindings
from vaezoo.tracking.artifacts import stored_files
from vaezoo.tracking.joining import changed_pictures, join_run
from vaezoo.tracking.notes import Note, read_note, write_note
from vaezoo.tracking.tables import score_table


def add_study(found: StudyFindings) -> None:
    """Log a study's table, plots and files in a run of its own; nothing where its runs are not on W&B.

    Args:
        found: The study's results.
    """
    folder = RunFolder(found.folder)
    notes = [read_note(RunFolder.of(checkpoint)) for checkpoint in found.checkpoints.values()]
    first = next((note for note in notes if note), None)
    if first is None:
        return
    note: Note = read_note(folder) or {
        "id": uuid4().hex[:8],
        "entity": first.get("entity"),
        "project": first.get("project"),
        "group": found.folder.name,
        "name": found.title,
        "job_type": "study",
    }
    plots = {path.name: path for path in found.plots}

    def add(run: Any) -> None:
        write_note(folder, note)
        run.log({"study/scores": score_table(found.scores()), **changed_pictures(plots, "study", run)})
        run.log_artifact(stored_files(f"study-{run.id}", "study", found.files, folder))

    join_run(found.folder, note, add)
