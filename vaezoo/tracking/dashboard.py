"""`vaezoo dashboard`: a workspace on Weights & Biases that compares runs, or the report of a study."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vaezoo.callbacks.evaluation import DEFAULT_SCORES
from vaezoo.metrics.catalogue import METRICS
from vaezoo.runs.options import CommandParser
from vaezoo.study.findings import StudyFindings
from vaezoo.tracking.panels import KL, RECONSTRUCTION, SCORE_FAMILIES, line_panels, media_panels
from vaezoo.tracking.report import study_notes, study_report
from vaezoo.tracking.wandb import LOSSES, SCORES, STEP

NAME = "vaezoo: compare runs"
COLUMNS = (
    *("config:family", "config:dataset", "config:data_source", "config:seed"),
    *(f"summary:{name}.min" for name in LOSSES),
    # What a training scores unless told otherwise.
    *(f"summary:val/{name}.max" for name, entry in METRICS.items() if entry.build in DEFAULT_SCORES),
)


def workspace(project: str, entity: str) -> Any:
    """The dashboard, not yet saved: runs of an experiment form one line, with the spread of its seeds around it."""
    from wandb_workspaces import workspaces as ws
    from wandb_workspaces.reports.v2 import interface as wr

    families = {title: f"val/({'|'.join(names)})(_.*)?" for title, names in SCORE_FAMILIES.items()}
    bars = wr.BarPlot(title="Scores", metrics=list(SCORES), groupby="Group", groupby_rangefunc="minmax")
    return ws.Workspace(
        entity=entity,
        project=project,
        name=NAME,
        sections=[
            ws.Section(
                "Reconstruction", [*line_panels(RECONSTRUCTION), *media_panels("Reconstructions")], is_open=True
            ),
            ws.Section("KL and capacity", line_panels(KL) + media_panels("Nats of each unit"), is_open=True),
            ws.Section("Disentanglement scores", [bars, *line_panels(families)], is_open=True),
            ws.Section(
                "Traversals",
                media_panels("Traversals", "Labels", "Classes", "Codes over positions", "Samples of the prior"),
                is_open=True,
            ),
        ],
        settings=ws.WorkspaceSettings(x_axis=STEP),
        runset_settings=ws.RunsetSettings(groupby=[ws.Metric("Group")], pinned_columns=list(COLUMNS)),
    )


def run_dashboard(args: Sequence[str]) -> None:
    """Create the dashboard of a project on Weights & Biases, or the report of a study.

    Args:
        args: Command line after `vaezoo dashboard`.
    """
    options = _parser().parse_args(list(args))
    found = StudyFindings.read(Path(options.report)) if options.report else None
    note = study_notes(found)[0] if found else {}
    try:
        import wandb_workspaces  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("one package is missing: pip install 'vaezoo[dashboard]'") from error
    import wandb

    if not wandb.login(prompt=False):
        raise RuntimeError("not logged in to Weights & Biases: run `wandb login` first")
    entity = str(options.entity or note.get("entity") or wandb.Api().default_entity)
    made = study_report(found, note.get("project") or options.project, entity) if found else None
    print((made or workspace(options.project, entity)).save().url)


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="vaezoo dashboard",
        description="Create a workspace on W&B that compares runs, or a report of a study.",
    )
    project = os.environ.get("WANDB_PROJECT", "vaezoo")
    parser.add_argument("--project", type=str, default=project, help="Project of the runs; a study has its own.")
    parser.add_argument("--entity", type=str | None, help="User or team. Defaults to yours.")
    parser.add_argument("--report", type=str | None, help="Folder of a study: write a report of its runs instead.")
    return parser
