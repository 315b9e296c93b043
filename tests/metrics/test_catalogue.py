"""The one list of scores, against what metrics compute and what tracking and dashboard make of it."""

import re

import pytest
import torch

from vaezoo.metrics.base import FittedMetric
from vaezoo.metrics.catalogue import DETAIL, METRICS, build, family, higher_is_better, score_names
from vaezoo.tracking.dashboard import COLUMNS, SCORE_FAMILIES
from vaezoo.tracking.wandb import SCORES

BETTER = {
    *("val/mig_20", "val/mig_adaptive", "val/sap_dip", "val/sap_reference"),
    *("val/dci_fast_disentanglement", "val/dci_fast_completeness", "val/dci_fast_informativeness"),
    *("val/dci_reference_disentanglement", "val/dci_reference_completeness", "val/dci_reference_informativeness"),
    *("val/factor_vae_reference", "val/factor_vae_parted", "val/beta_vae_standardised", "val/beta_vae_reference"),
    *("val/beta_vae_dip", "val/beta_vae_dip_continuous", "val/modularity_reference", "val/modularity_active"),
    *("val/infomec_modularity", "val/infomec_explicitness", "val/infomec_compactness"),
    *("val/explicitness", "val/irs_99", "val/class_accuracy", "val/cluster_accuracy", "val/attribute_accuracy"),
}
LINES = {
    "MIG": "val/mig_.*",
    "SAP": "val/sap_.*",
    "DCI": "val/dci_.*",
    "FactorVAE score": "val/factor_vae_.*",
    "BetaVAE score": "val/beta_vae_.*",
    "Modularity": "val/modularity_.*",
    "Explicitness": "val/explicitness.*",
    "InfoMEC": "val/infomec.*",
    "IRS": "val/irs_.*",
    "Accuracy": "val/[a-z]+_accuracy.*",
}


def computed(name: str) -> list[str]:
    """Names of the scores that a metric gives for a pool of two binary factors."""
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(0, 2, (200, 2), generator=generator)
    codes = factors + 0.3 * torch.rand(200, 2, generator=generator)
    images = torch.rand(200, 1, 2, 2, generator=generator)
    tables = {"factors": factors, "labels": factors, "positions": factors, "classes": factors[:, 0], "images": images}
    shell = build(name, 0)
    pool = [tables.get(table, images if table == "reconstructions" else codes) for table in shell.reads]
    if isinstance(shell, FittedMetric):
        shell.update(*pool, training=True)
    shell.update(*pool)
    return list(shell.compute())


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_gives_the_scores_that_the_catalogue_names(name: str) -> None:
    names = computed(name)
    assert set(score_names(name)) <= set(names)
    assert names[0] == score_names(name)[0]
    assert not any(DETAIL.search(score) for score in score_names(name)[1:])
    assert build(name, 0).higher_is_better == higher_is_better(name)


def test_tracking_knows_every_score_that_is_better_the_higher_it_is() -> None:
    assert set(SCORES) >= BETTER
    assert {f"val/{score}" for name in METRICS if not higher_is_better(name) for score in score_names(name)}.isdisjoint(
        SCORES
    )


def test_the_dashboard_has_one_chart_a_family() -> None:
    assert set(LINES) <= set(SCORE_FAMILIES)
    assert sorted(name for names in SCORE_FAMILIES.values() for name in names) == sorted(
        name for name in METRICS if higher_is_better(name)
    )
    for title, pattern in LINES.items():
        assert all(re.fullmatch(pattern, f"val/{name}") for name in SCORE_FAMILIES[title])
        assert all(family(name) == title for name in SCORE_FAMILIES[title])
    assert COLUMNS[-4:] == (
        "summary:val/loss.min",
        "summary:val/recon.min",
        "summary:val/mig_20.max",
        "summary:val/sap_dip.max",
    )
