"""Weak labels against exact arithmetic on the positions of the canvas."""

import math

import pytest
import torch

from datamodules.weak_labels import memberships, polar

GRID = torch.cartesian_prod(torch.arange(64), torch.arange(64))
EVERY_P = pytest.mark.parametrize("bins", range(2, 9))


def test_polar_by_hand() -> None:
    angle, distance = polar(torch.tensor([0, 5, 0, 7, 30]), torch.tensor([0, 0, 5, 7, 40]))
    assert angle.tolist() == pytest.approx([0, 0, math.pi / 2, math.pi / 4, math.atan(4 / 3)])
    assert distance.tolist() == pytest.approx([0, 5, 5, 7 * math.sqrt(2), 50])


def test_polar_inverts_to_row_and_column() -> None:
    angle, distance = polar(GRID[:, 0], GRID[:, 1])
    back = torch.stack([distance * angle.cos(), distance * angle.sin()], 1)
    assert (back - GRID).abs().max() < 1e-9
    assert angle.min() == 0
    assert angle.max() <= math.pi / 2
    assert distance.max() <= 64 * math.sqrt(2)


@EVERY_P
def test_every_row_is_one_hot(bins: int) -> None:
    for labels in memberships(*polar(*GRID.unbind(1)), bins):
        assert labels.shape == (4096, bins)
        assert labels.dtype == torch.float32
        assert bool((labels.sum(1) == 1).all())
        assert set(labels.flatten().tolist()) == {0, 1}
        assert bool((labels.sum(0) > 0).all())  # each bin is used


@EVERY_P
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distance_bins_in_whole_numbers(bins: int, dtype: torch.dtype) -> None:
    angle, distance = polar(*GRID.unbind(1))
    _, labels = memberships(angle.to(dtype), distance.to(dtype), bins)
    # d > k * 64 sqrt(2) / p is d^2 p^2 > 8192 k^2, without rounding.
    scaled = (GRID**2).sum(1) * bins**2
    edges = 8192 * torch.arange(1, bins) ** 2
    assert torch.equal(labels.argmax(1), (scaled[:, None] > edges).sum(1))


@EVERY_P
def test_angle_bins_by_tangent(bins: int) -> None:
    labels, _ = memberships(*polar(*GRID.unbind(1)), bins)
    for (row, col), index in zip(GRID.tolist(), labels.argmax(1).tolist(), strict=True):
        # phi > k pi / 2p is col > row tan(k pi / 2p); the diagonal is the only edge on which positions lie.
        slopes = [1 if 2 * k == bins else math.tan(k * math.pi / 2 / bins) for k in range(1, bins)]
        assert index == sum(col > row * slope for slope in slopes), (row, col)


@EVERY_P
def test_zero_is_in_the_first_bin_and_the_maximum_in_the_last(bins: int) -> None:
    angle = torch.tensor([0, math.pi / 2])
    distance = torch.tensor([0, 64 * math.sqrt(2)])
    for labels in memberships(angle, distance, bins):
        assert labels.argmax(1).tolist() == [0, bins - 1]


def test_upper_edges_belong_to_the_bin_below() -> None:
    angle, distance = memberships(*polar(torch.tensor([32, 33, 33]), torch.tensor([32, 33, 34])), 2)
    assert angle.argmax(1).tolist() == [0, 0, 1]
    assert distance.argmax(1).tolist() == [0, 1, 1]


@pytest.mark.parametrize("bins", [-1, 0, 1, 9])
def test_bins_out_of_range(bins: int) -> None:
    with pytest.raises(ValueError, match=r"bins must lie in 2\.\.8"):
        memberships(torch.zeros(1), torch.zeros(1), bins)


def test_values_out_of_range() -> None:
    with pytest.raises(ValueError, match="angle must lie in"):
        memberships(torch.tensor([1.6]), torch.zeros(1), 4)
    with pytest.raises(ValueError, match="distance must lie in"):
        memberships(torch.zeros(1), torch.tensor([-0.1]), 4)
