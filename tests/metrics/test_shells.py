"""The torchmetrics shells: batches, ranks, names of scores and configuration."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from jsonargparse import ArgumentParser
from torch import Tensor
from torchmetrics import Metric, MetricCollection

import vaezoo.metrics as M
from tests.helpers.oracle import grid_sample, standardised
from tests.helpers.ranks import start_ranks
from vaezoo.metrics import functional as F

FACTORS = torch.as_tensor(grid_sample((3, 4, 6), 900))
CODES = torch.as_tensor(standardised(FACTORS.numpy()) + 0.5 * np.random.default_rng(0).normal(size=(900, 3)))
RUNS = torch.stack([CODES, -CODES.flip(1)])

CASES: dict[str, tuple[Metric, tuple[Tensor, ...], set[str]]] = {
    "mig": (M.MIG(), (CODES, FACTORS), {"mig_20"}),
    "mig adaptive": (M.MIG("adaptive"), (CODES, FACTORS), {"mig_adaptive"}),
    "sap": (M.SAP(categorical=(0,)), (CODES, FACTORS), {"sap_dip"}),
    "sap svm": (M.SAP("reference", seed=3), (CODES, FACTORS), {"sap_reference", "sap_reference_seed"}),
    "dci": (
        M.DCI(),
        (CODES, FACTORS),
        {
            f"dci_fast_{x}"
            for x in ("disentanglement", "completeness", "informativeness", "informativeness_train", "seed")
        },
    ),
    "factor": (
        M.FactorVAEScore(votes=500, test_votes=500),
        (CODES, FACTORS),
        {f"factor_vae_reference{x}" for x in ("", "_train", "_active", "_seed")},
    ),
    "factor parted": (
        M.FactorVAEScore("parted"),
        (CODES, FACTORS),
        {f"factor_vae_parted{x}" for x in ("", "_active", "_seed")},
    ),
    "factor pruned": (
        M.FactorVAEScore("parted_pruned"),
        (CODES, FACTORS),
        {f"factor_vae_parted_pruned{x}" for x in ("", "_active", "_seed")},
    ),
    "beta": (
        M.BetaVAEScore(points=500, test_points=500),
        (CODES, FACTORS),
        {f"beta_vae_standardised{x}" for x in ("", "_train", "_seed")},
    ),
    "beta dip": (
        M.BetaVAEScore("dip", points=500, test_points=500),
        (CODES, FACTORS),
        {f"beta_vae_dip{x}" for x in ("", "_train", "_seed")},
    ),
    "beta continuous": (
        M.BetaVAEScore("dip_continuous", points=500, test_points=500, categorical=(0,)),
        (CODES, FACTORS),
        {f"beta_vae_dip_continuous{x}" for x in ("", "_train", "_seed")},
    ),
    "modularity": (M.Modularity("active"), (CODES, FACTORS), {"modularity_active"}),
    "explicitness": (M.Explicitness(), (CODES, FACTORS), {f"explicitness{x}" for x in ("", "_train", "_seed")}),
    "infomec": (
        M.InfoMEC(seed=2),
        (CODES, FACTORS),
        {f"infomec_{x}" for x in ("modularity", "explicitness", "compactness", "seed")},
    ),
    "irs": (M.IRS(), (CODES, FACTORS), {"irs_99"}),
    "tc": (M.GaussianTotalCorrelation(), (CODES, FACTORS), {"gaussian_total_correlation"}),
    "wasserstein": (
        M.GaussianWassersteinCorrelation(),
        (CODES,),
        {"gaussian_wasserstein_correlation", "gaussian_wasserstein_correlation_normalised"},
    ),
    "codes": (M.CodeMutualInformation(), (CODES,), {"code_mutual_information_20"}),
    "active": (M.ActiveUnits(), (CODES,), {"active_units"}),
    "kl": (M.KLPerUnit(), (CODES**2,), {"kl", "kl_active_units", "kl_unit_0", "kl_unit_1", "kl_unit_2"}),
    "labels": (M.LabelDistance(), (CODES, FACTORS), {"label_distance", *(f"label_distance_{k}" for k in range(3))}),
    "polar": (M.PolarError(), (CODES, FACTORS[:, :2]), {"polar_error"}),
    "cartesian": (M.CartesianError(), (CODES, FACTORS[:, :2]), {"cartesian_error"}),
    "class": (M.ClassAccuracy(), (CODES, FACTORS[:, 0]), {"class_accuracy"}),
    "cluster": (M.ClusterAccuracy(), (CODES, FACTORS[:, 0]), {"cluster_accuracy"}),
    "label classes": (
        M.LabelAccuracy(),
        (CODES.round(), FACTORS),
        {"label_accuracy", *(f"label_accuracy_{k}" for k in range(3))},
    ),
    "label order": (M.LabelOrder(), (CODES, FACTORS), {"label_order", *(f"label_order_{k}" for k in range(3))}),
}


def test_every_shell_is_tested_and_every_score_documented() -> None:
    shells = {type(metric).__name__ for metric, _, _ in CASES.values()} | {
        "UDR",
        "ReconstructionError",
        "AttributeAccuracy",
    }
    assert shells | {"evaluate"} == set(M.__all__)
    rows = (M.__doc__ or "").splitlines()
    for metric, tables, _ in CASES.values():
        metric.reset()
        score = next(iter(metric(*tables)))
        assert any(f"`{type(metric).__name__}`" in row and f"`{score}`" in row for row in rows)


@pytest.mark.parametrize("name", CASES)
def test_batches_in_any_order_give_the_score_of_the_whole(name: str) -> None:
    metric, tables, keys = CASES[name]
    metric.reset()
    whole = metric(*tables)
    assert set(whole) == keys
    metric.reset()
    for batch in reversed(list(zip(*(table.split(250) for table in tables), strict=True))):
        metric.update(*batch)
    for key, value in metric.compute().items():
        assert value.dtype == torch.float64
        assert value.ndim == 0
        torch.testing.assert_close(value, whole[key], rtol=1e-9, atol=1e-12)
    metric.reset()


def test_shells_call_the_function_they_are_named_after() -> None:
    scores = M.DCI(variant="fast", seed=2)(CODES, FACTORS)
    assert {key: value.item() for key, value in scores.items()} == F.dci(CODES.numpy(), FACTORS.numpy(), seed=2)


def test_udr_takes_a_batch_of_every_run() -> None:
    metric, kl = M.UDR(), torch.ones_like(RUNS)
    for rows in torch.arange(900).split(250):
        metric.update(RUNS[:, rows], kl[:, rows])
    expected = F.udr(list(RUNS.numpy()), [np.ones(3)] * 2)
    assert {key: value.item() for key, value in metric.compute().items()} == pytest.approx(expected)
    with pytest.raises(ValueError, match="runs, batch, latents"):
        metric.update(CODES, CODES)


def test_attributes_are_fitted_on_training_images_and_scored_on_others() -> None:
    metric, attributes, names = M.AttributeAccuracy(("a", "b", "c")), FACTORS > 1, ("a", "b", "c")
    for rows in torch.arange(900).split(250):
        train, test = rows[rows < 600], rows[rows >= 600]
        metric.update(CODES[train], attributes[train], training=True)
        metric.update(CODES[test], attributes[test])
    train, test = (CODES[:600].numpy(), attributes[:600].numpy()), (CODES[600:].numpy(), attributes[600:].numpy())
    expected = F.attribute_accuracy(*train, test=test, attribute_names=names)
    assert list(expected) == ["attribute_accuracy", *(f"attribute_accuracy_{name}" for name in names)]
    assert {key: value.item() for key, value in metric.compute().items()} == pytest.approx(expected)
    metric.reset()
    metric.update(CODES, attributes)
    with pytest.raises(ValueError, match="no training images to fit on"):
        metric.compute()
    with pytest.raises(ValueError, match="must be 0 or 1"):
        metric.update(CODES, FACTORS)


def test_reconstruction_error_weighs_examples_equally() -> None:
    x = torch.rand(7, 3, 4, 4)
    y = torch.rand(7, 3, 4, 4)
    squared, bernoulli = M.ReconstructionError(), M.ReconstructionError("bernoulli")
    for rows in torch.arange(7).split(3):
        squared.update(y[rows], x[rows])
        bernoulli.update(y[rows], x[rows])
    found = squared.compute()["reconstruction_error_squared"]
    assert found.item() == pytest.approx((x - y).double().square().mean().item(), rel=1e-6)
    expected = -(x * y.log() + (1 - x) * (1 - y).log()).mean().item()
    assert bernoulli.compute()["reconstruction_error_bernoulli"].item() == pytest.approx(expected, rel=1e-5)


def test_half_precision_codes_with_a_gradient_and_an_empty_metric() -> None:
    metric = M.MIG()
    with pytest.warns(UserWarning, match="before the ``update``"), pytest.raises(ValueError, match="call update first"):
        metric.compute()
    metric.reset()
    codes = CODES.bfloat16().requires_grad_()
    expected = F.mig(CODES.bfloat16().double().numpy(), FACTORS.numpy())
    assert metric(codes, FACTORS)["mig_20"].item() == expected["mig_20"]
    with pytest.raises(ValueError, match="900 rows and factors 5"):
        metric.update(CODES, FACTORS[:5])


def test_a_collection_gathers_all_scores_by_name() -> None:
    scores = MetricCollection([M.MIG(), M.SAP(), M.Modularity(), M.GaussianTotalCorrelation()])(CODES, FACTORS)
    assert set(scores) == {"mig_20", "sap_dip", "modularity_reference", "gaussian_total_correlation"}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("MIG", {"variant": "adaptive", "num_bins": 30, "discrete": [10]}),
        ("SAP", {"variant": "dip", "categorical": [0, 2]}),
        ("FactorVAEScore", {"variant": "parted", "batch": 50}),
        ("UDR", {"kl_threshold": None}),
    ],
)
def test_configuration_by_class_path(name: str, arguments: dict[str, Any]) -> None:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--metric", type=Metric)
    config = parser.parse_object({"metric": {"class_path": f"vaezoo.metrics.{name}", "init_args": arguments}})
    instantiate = getattr(parser, "instantiate", parser.instantiate_classes)  # the second name ends with version 5
    assert type(instantiate(config).metric).__name__ == name
    with pytest.raises(Exception, match="variant"):
        parser.parse_object({"metric": {"class_path": f"vaezoo.metrics.{name}", "init_args": {"variant": "none"}}})


def rank_scores(rank: int, port: int, folder: str) -> None:
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=2, rank=rank)
    metric = M.FactorVAEScore(votes=500, test_votes=500, seed=4)
    mine = slice(0, 300) if rank == 0 else slice(300, None)  # unequal shares
    for codes, factors in zip(CODES[mine].split(128), FACTORS[mine].split(128), strict=True):
        metric.update(codes, factors)
    torch.save(metric.compute(), Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


def test_two_ranks_score_what_one_process_scores_to_the_bit(tmp_path: Path) -> None:
    start_ranks(rank_scores, str(tmp_path))
    expected = M.FactorVAEScore(votes=500, test_votes=500, seed=4)(CODES, FACTORS)
    for rank in range(2):
        assert torch.load(tmp_path / f"{rank}.pt") == expected
