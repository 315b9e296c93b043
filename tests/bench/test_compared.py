"""Ratios, spreads and tables of the benchmarks."""

from pathlib import Path

import pytest
import torch
from torch import nn

from tests.bench.children import ChildError, result_of
from tests.bench.growth import Point, points, rows_of
from tests.bench.networks import BETA, NETWORKS, plain, plain_loss
from tests.bench.peers import workload
from tests.bench.peers.__main__ import OURS, rows_of as peer_rows
from tests.bench.timing import Compared, compared
from tests.bench.training import SHAPE
from vaezoo.models import BetaVAE
from vaezoo.nn.networks import BurgessNetwork, DenseNetwork, LaRVAENetwork, Network


def test_ratios_are_of_the_same_round_and_of_the_best():
    found = compared("plain", {"plain": [2.0, 4.0, 5.0], "other": [3.0, 2.0, 10.0]})
    assert found["plain"] == Compared(2.0, 1.0, 1.0, 1.0, 1.0)
    assert found["other"] == Compared(2.0, 1.0, 1.5, 0.5, 2.0)


def test_growth_is_beside_the_first_point_of_each_axis():
    axes = {"batch": (16, 64), "ranks": (1, 2)}
    assert points(axes) == [Point(batch=16), Point(), Point(ranks=2)]
    ms = {Point(batch=16): [1.0, 2.0], Point(): [4.0, 4.0], Point(ranks=2): [3.0, 6.0]}
    rows = rows_of(axes, ms, {point: [10.0, 10.0] for point in ms})
    assert [(row["axis"], row["size"], row["of the first"], row["spread"]) for row in rows] == [
        ("batch", 16, 1.0, "1.00–1.00"),
        ("batch", 64, 4.0, "2.00–4.00"),
        ("ranks", 1, 1.0, "1.00–1.00"),
        ("ranks", 2, 0.75, "0.75–1.50"),
    ]


def test_peers_are_beside_vaezoo_and_those_that_missed_a_round_are_left_out():
    values = {OURS: [8.0, 10.0], "pythae": [16.0, 10.0], "disent": [9.0]}
    ours, pythae = peer_rows("train", "ms", "BetaVAE", values, rounds=2)
    assert (ours["images/s"], ours[f"of {OURS}"]) == (8000, 1.0)
    assert (pythae["images/s"], pythae[f"of {OURS}"], pythae["median"]) == (6400, 1.25, 1.5)
    assert pythae["spread"] == "1.00–2.00"


@pytest.mark.parametrize(
    ("size", "network"), [(workload.CONV, BurgessNetwork()), (workload.TINY, DenseNetwork([8], [8]))]
)
def test_peers_train_the_same_network(size: workload.Size, network: Network):
    model = BetaVAE(size.shape, size.latents, network=network)
    theirs = [*workload.encoder(size).parameters(), *workload.decoder(size).parameters()]
    ours = [p.shape for p in model.parameters()]
    assert sorted(p.shape for p in theirs) == sorted(ours)


@pytest.mark.parametrize("network", NETWORKS)
def test_the_plain_loop_computes_the_same_loss_with_pytorch_s_own_layers(network: type[Network]):
    model, x = BetaVAE(SHAPE, beta=BETA, network=network()).train(), torch.rand(3, *SHAPE)
    loss_of = plain_loss(model)
    torch.manual_seed(0)
    ours = torch.stack([term.loss for term in model.terms(x).values()]).sum()
    torch.manual_seed(0)
    theirs = loss_of(x)
    torch.testing.assert_close(theirs, ours, rtol=1e-5, atol=0.0)
    inputs = list(model.parameters())
    for a, b in zip(torch.autograd.grad(theirs, inputs), torch.autograd.grad(ours, inputs), strict=True):
        assert (a - b).norm() <= 1e-3 * b.norm() + 1e-4
    layers = [m for half in (model.encoder, model.decoder) for m in plain(half).modules()]
    assert {type(layer).__module__.split(".")[0] for layer in layers} == {"torch"}
    assert len([m for m in layers if isinstance(m, nn.InstanceNorm2d)]) == 7 * (network is LaRVAENetwork)


def test_a_child_that_fails_says_why(tmp_path: Path):
    with pytest.raises(ChildError, match="No such file"):
        result_of(tmp_path / "python", "none", [], tmp_path)
