import itertools

import pytest
import torch

from datamodules.factors import Factor, choose, label, ravel, unravel

SHAPE, SIZE, COLOUR = Factor("shape", 3, "categorical"), Factor("size", 5), Factor("colour", 1, "categorical")


def test_grid_points_are_numbered_with_the_last_factor_fastest() -> None:
    sizes = (2, 3, 4)
    points = torch.tensor(list(itertools.product(range(2), range(3), range(4))))
    assert torch.equal(unravel(torch.arange(24), sizes), points)
    assert torch.equal(ravel(points, sizes), torch.arange(24))


def test_large_grids_do_not_overflow() -> None:
    sizes = (2,) * 40
    last = torch.ones(1, 40, dtype=torch.long)
    assert ravel(last, sizes).item() == 2**40 - 1
    assert torch.equal(unravel(torch.tensor([2**40 - 1]), sizes), last)


@pytest.mark.parametrize(
    "factors",
    [
        torch.tensor([[0, 3]]),
        torch.tensor([[-1, 0]]),
        torch.zeros(1, 3).long(),
        torch.zeros(2).long(),
        torch.zeros(1, 2),
    ],
    ids=["too large", "negative", "too many", "no batch", "floats"],
)
def test_wrong_factors_are_refused(factors: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="factors must be"):
        ravel(factors, (2, 3))


def test_labels_by_hand() -> None:
    factors = torch.tensor([[0, 0], [1, 1], [2, 4]])
    chosen = [SHAPE, SIZE]
    assert label(factors, chosen, "rank").tolist() == [[0, 0], [0.5, 0.25], [1, 1]]
    assert label(factors, chosen, "index").tolist() == [[0, 0], [1, 1], [2, 4]]
    assert label(factors, chosen, "onehot").tolist() == [
        [1, 0, 0, 1, 0, 0, 0, 0],
        [0, 1, 0, 0, 1, 0, 0, 0],
        [0, 0, 1, 0, 0, 0, 0, 1],
    ]


@pytest.mark.parametrize("form", ["rank", "index", "onehot"])
def test_labels_are_floats_and_tell_all_factors_apart(form: str) -> None:
    points = unravel(torch.arange(15), (3, 5))
    labels = label(points, [SHAPE, SIZE], form)  # type: ignore[arg-type]
    assert labels.dtype == torch.float32
    assert len(labels.unique(dim=0)) == 15


def test_a_factor_of_one_value_has_rank_zero() -> None:
    assert label(torch.tensor([[0]]), [COLOUR], "rank").tolist() == [[0]]


def test_factors_are_chosen_by_name_in_the_order_of_the_dataset() -> None:
    assert choose([SHAPE, SIZE, COLOUR], ["colour", "shape"]) == (SHAPE, COLOUR)
    assert choose([SHAPE, SIZE], None) == (SHAPE, SIZE)


def test_unknown_or_no_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"labelled_factors hue not known; choose from shape, size"):
        choose([SHAPE, SIZE], ["shape", "hue"])
    with pytest.raises(ValueError, match=r"labelled_factors is empty; name some of shape, size"):
        choose([SHAPE, SIZE], [])
