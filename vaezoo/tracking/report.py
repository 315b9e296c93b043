"""A study as a report on Weights & Biases: its tables, and panels over its own runs."""

import re
from typing import Any

from vaezoo.runs.folder import RunFolder
from vaezoo.study.findings import StudyFindings
from vaezoo.tracking.notes import Note, read_note
from vaezoo.tracking.panels import KL, PICTURES, RECONSTRUCTION, line_panels, media_panels

_LONGEST_TITLE = 128


def study_notes(found: StudyFindings) -> list[Note]:
    """What the study's runs noted about themselves on W&B.

    Raises:
        ValueError: None of them is there.
    """
    notes = [read_note(RunFolder.of(checkpoint)) for checkpoint in found.checkpoints.values()]
    if not any(notes):
        raise ValueError(
            f"no finished run in {found.folder} is on Weights & Biases: let the study's configuration name "
            "trainer.logger: WandbLogger"
        )
    return [note for note in notes if note]


def study_report(found: StudyFindings, project: str, entity: str) -> Any:
    """The report, not yet saved: tables of the study's summary, bars of its scores, curves and pictures of its runs.

    Args:
        found: The study's results.
        project: Project of its runs.
        entity: User or team.
    """
    from wandb_workspaces import expr
    from wandb_workspaces.reports.v2 import interface as wr

    ids = [str(note["id"]) for note in study_notes(found)]

    def grid(panels: list[Any], runs: list[str]) -> Any:
        return wr.PanelGrid(
            runsets=[wr.Runset(name="study", filters=expr.And(expr.Metric("ID").isin(runs)))], panels=panels
        )

    scores = [grid([_bars(wr, found)], ids)]
    if own := read_note(RunFolder(found.folder)).get("id"):
        scores.append(grid([wr.WeavePanelSummaryTable(table_name="study/scores")], [own]))
    return wr.Report(
        project=project,
        entity=entity,
        title=found.title[:_LONGEST_TITLE],
        description=f"{len(ids)} runs of {found.title}",
        blocks=[
            *(wr.MarkdownBlock(text) for text in _summaries(found)),
            wr.H2("Scores"),
            *scores,
            wr.H2("Curves"),
            grid(line_panels(RECONSTRUCTION | KL), ids),
            wr.H2("Pictures"),
            grid(media_panels(*PICTURES), ids),
        ],
    )


def _bars(wr: Any, found: StudyFindings) -> Any:
    """Scores of the runs as `vaezoo evaluate` added them, without their details."""
    keys = {
        f"evaluate/{found.checkpoints[run].stem}/{score}": None
        for run, scores in found.main_scores().items()
        for score in scores
    }
    return wr.BarPlot(title="Scores", metrics=list(keys))


def _summaries(found: StudyFindings) -> list[str]:
    """The tables of summary.md; the report has its title already."""
    texts = [path.read_text(encoding="utf-8") for path in found.files if path.name == "summary.md"]
    return [re.sub(r"\A# .*\n+", "", text) for text in texts]
