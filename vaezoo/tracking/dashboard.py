"""`vaezoo dashboard`: a workspace on Weights & Biases that compares runs."""

import os
from collections.abc import Sequence
from typing import Any

from vaezoo.callbacks.evaluation import DEFAULT_SCORES
from vaezoo.metrics.catalogue import METRICS, family, higher_is_better
from vaezoo.runs.options import CommandParser
from vaezoo.tracking.wandb import LOSSES, SCORES, STEP

NAME = "vaezoo: compare runs"
# Titles, and what the names of the metrics match; a model logs those of its own terms.
RECONSTRUCTION = {
    "Loss, validation": "val/loss",
    "Reconstruction, validation": "val/recon",
    "Reconstruction, training": "train/recon",
    "Reconstruction in nats, where the loss is scaled": "val/recon/nats",
}
KL = {
    "KL in nats, validation": "val/(kl|capacity_).*/nats",
    "KL in nats, training": "train/(kl|capacity_).*/nats",
    "Capacity in nats": "train/capacity_.*/capacity",
    "Total correlation and its neighbours": "val/tc/.*",
    "Covariance": "val/covariance/.*",
    "Labels": "val/labels/.*",
}
_METRICS = [name for name in METRICS if higher_is_better(name)]
SCORE_FAMILIES = {title: [name for name in _METRICS if family(name) == title] for title in map(family, _METRICS)}
PICTURES = {
    "Reconstructions": ["reconstructions"],
    "Traversals": [f"traversals_{name}{start}" for name in ("z", "u", "c") for start in ("", "_prior")],
    "Labels": ["label_traversals"],
    "Classes": ["samples_c0", "prior_u0", "transfers"],
    "Nats of each unit": ["nats_z", "nats_u", "nats_c"],
    "Codes over positions": ["position_maps"],
    "Samples of the prior": ["samples"],
}
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

    def lines(panels: dict[str, str]) -> list[Any]:
        return [
            wr.LinePlot(title=title, x=STEP, metric_regex=f"^{pattern}$", groupby_rangefunc="minmax")
            for title, pattern in panels.items()
        ]

    def media(*titles: str) -> list[Any]:
        keys = {title: [f"pictures/{name}" for name in PICTURES[title]] for title in titles}
        return [
            wr.MediaBrowser(title=title, media_keys=names, grid_x_axis="step", grid_y_axis="run")
            for title, names in keys.items()
        ]

    families = {title: f"val/({'|'.join(names)})(_.*)?" for title, names in SCORE_FAMILIES.items()}
    bars = wr.BarPlot(title="Scores", metrics=list(SCORES), groupby="Group", groupby_rangefunc="minmax")
    return ws.Workspace(
        entity=entity,
        project=project,
        name=NAME,
        sections=[
            ws.Section("Reconstruction", [*lines(RECONSTRUCTION), *media("Reconstructions")], is_open=True),
            ws.Section("KL and capacity", [*lines(KL), *media("Nats of each unit")], is_open=True),
            ws.Section("Disentanglement scores", [bars, *lines(families)], is_open=True),
            ws.Section(
                "Traversals",
                media("Traversals", "Labels", "Classes", "Codes over positions", "Samples of the prior"),
                is_open=True,
            ),
        ],
        settings=ws.WorkspaceSettings(x_axis=STEP),
        runset_settings=ws.RunsetSettings(groupby=[ws.Metric("Group")], pinned_columns=list(COLUMNS)),
    )


def run_dashboard(args: Sequence[str]) -> None:
    """Create the dashboard in a project on Weights & Biases.

    Args:
        args: Command line after `vaezoo dashboard`.
    """
    parser = CommandParser(prog="vaezoo dashboard", description="Create a workspace on W&B that compares runs.")
    project = os.environ.get("WANDB_PROJECT", "vaezoo")
    parser.add_argument("--project", type=str, default=project, help="Project of the runs.")
    parser.add_argument("--entity", type=str | None, help="User or team; your default one where not given.")
    options = parser.parse_args(list(args))
    try:
        import wandb_workspaces  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("one package is missing: pip install '.[dashboard]' in vaezoo's folder") from error
    import wandb

    if not wandb.login(prompt=False):
        raise RuntimeError("not logged in to Weights & Biases: run `wandb login` first")
    entity = str(options.entity or wandb.Api().default_entity)
    print(workspace(options.project, entity).save().url)
