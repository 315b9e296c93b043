"""Panels on Weights & Biases over what models log, for the dashboard and for reports."""

from typing import Any

from vaezoo.metrics.catalogue import METRICS, family, higher_is_better
from vaezoo.tracking.wandb import STEP

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


def line_panels(panels: dict[str, str]) -> list[Any]:
    """Curves over steps, by title; names of metrics as regular expressions."""
    from wandb_workspaces.reports.v2 import interface as wr

    return [
        wr.LinePlot(title=title, x=STEP, metric_regex=f"^{pattern}$", groupby_rangefunc="minmax")
        for title, pattern in panels.items()
    ]


def media_panels(*titles: str) -> list[Any]:
    """Panels of `PICTURES`, steps from left to right and runs from top to bottom."""
    from wandb_workspaces.reports.v2 import interface as wr

    keys = {title: [f"pictures/{name}" for name in PICTURES[title]] for title in titles}
    return [
        wr.MediaBrowser(title=title, media_keys=names, grid_x_axis="step", grid_y_axis="run")
        for title, names in keys.items()
    ]
