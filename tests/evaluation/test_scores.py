"""Intervals and what an evaluation knows by name."""

import pytest
import torch

import vaezoo.metrics as M
from tests.helpers.oracle import grid_sample, standardised
from vaezoo.metrics.catalogue import METRICS, build
from vaezoo.metrics.reading import bind_known
from vaezoo.metrics.scoring import definition, score

FACTORS = torch.as_tensor(grid_sample((3, 4, 6), 600))
CODES = torch.as_tensor(standardised(FACTORS.numpy()))


@pytest.mark.parametrize("name", METRICS)
def test_a_name_is_that_of_a_documented_score(name: str) -> None:
    shell = build(name, seed=3)
    rows = [row for row in (M.__doc__ or "").splitlines() if f"`{type(shell).__name__}`" in row]
    assert any(f"`{name}" in row for row in rows)
    assert definition(shell.score)["arguments"].get("seed", 3) == 3


@pytest.mark.parametrize("name", ["mig_20", "sap_dip", "sap_reference", "explicitness", "dci_fast", "irs_99"])
def test_the_interval_of_a_known_score_holds_it(name: str) -> None:
    """Noisy copies of the factors: a held-out part that is drawn with its training rows would score too high."""
    shell = build(name, seed=1)
    shell.update(CODES + 0.5 * torch.randn(CODES.shape, generator=torch.Generator().manual_seed(0)), FACTORS)
    result = score(shell, 5, seed=0)
    first = next(iter(result.scores))
    low, high = result.intervals[first]
    assert low < result.scores[first] < high
    assert (low + high) / 2 == pytest.approx(result.scores[first], abs=1e-12)  # that of the same split
    assert high - low < 0.3
    assert {key: value.item() for key, value in shell.compute().items()} == result.scores
    assert score(shell, 5, seed=0) == result


def test_scores_of_nearest_neighbours_have_no_interval_even_where_one_is_asked_for() -> None:
    shell = build("infomec", seed=1)
    shell.update(CODES, FACTORS)
    result = score(shell, 5, seed=0)
    assert result.intervals == {}
    assert result.definition["interval"] is None
    assert {key: value.item() for key, value in shell.compute().items()} == result.scores


def test_what_model_and_data_determine_is_filled_in_once() -> None:
    open_, closed = M.SAP(), M.SAP(categorical=(1,))
    for metric in (open_, closed):
        bind_known(metric, discrete=(4,), categorical=(0,))
        bind_known(metric, discrete=(4,), categorical=(0,))
    known = {"categorical": (0,), "discrete": (4,)}
    assert definition(open_.score)["arguments"] == {**known, "threshold": 0.05, "groups": (), "correlation": None}
    assert definition(closed.score)["arguments"]["categorical"] == (1,)
