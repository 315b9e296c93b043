import pytest
import torch
from hypothesis import given, strategies as st

from datamodules.splits import balanced, count_of, hide, split


def test_counts() -> None:
    assert count_of(10, 50, "labels") == 10
    assert count_of(50, 50, "labels") == 50
    assert count_of(1, 50, "labels") == 1  # a whole number is a count, never "all of them"
    assert count_of(1.0, 50, "labels") == 50
    assert count_of(0.01, 460_000, "labels") == 4600
    assert count_of(0.015, 1000, "labels") == 15
    assert count_of(0.001, 50, "labels") == 1  # never none


def test_a_whole_number_above_one_is_a_count_even_as_a_float() -> None:
    assert count_of(10.0, 100, "labels") == 10
    with pytest.raises(ValueError, match="at most 100"):
        count_of(101.0, 100, "labels")


@pytest.mark.parametrize("amount", [0, -1, 51])
def test_counts_out_of_range(amount: int) -> None:
    with pytest.raises(ValueError, match=f"labels={amount} must be at least 1 and at most 50"):
        count_of(amount, 50, "labels")


@pytest.mark.parametrize("amount", [0.0, -0.1, 1.01, float("nan")])
def test_fractions_out_of_range(amount: float) -> None:
    with pytest.raises(ValueError, match=f"labels={amount} is a fraction and must be above 0 and at most 1"):
        count_of(amount, 50, "labels")


def test_splits_part_the_data() -> None:
    train, val, test = split(100, 20, 10, seed=3)
    assert (len(train), len(val), len(test)) == (70, 20, 10)
    assert sorted([*train.tolist(), *val.tolist(), *test.tolist()]) == list(range(100))
    assert train.tolist() == sorted(train.tolist())


def test_splits_follow_their_seed() -> None:
    a, b, c = (split(100, 20, 10, seed)[2].tolist() for seed in (3, 3, 4))
    assert a == b != c


def test_splits_on_every_machine() -> None:
    _, val, test = split(40, 3, 3, seed=0)
    assert (val.tolist(), test.tolist()) == ([5, 11, 14], [4, 16, 21])


@pytest.mark.parametrize(("val", "test"), [(60, 40), (-1, 0), (0, -1)])
def test_splits_without_training_images(val: int, test: int) -> None:
    with pytest.raises(ValueError, match=f"val_size={val} and test_size={test} leave no training images of 100"):
        split(100, val, test, seed=0)


@given(cells=st.lists(st.integers(0, 5), min_size=1, max_size=60), share=st.floats(0, 1), seed=st.integers(0, 2**31))
def test_every_cell_gets_the_same_number_as_far_as_it_has_members(cells: list[int], share: float, seed: int) -> None:
    count = max(1, round(share * len(cells)))
    chosen = balanced(torch.tensor(cells), count, seed).tolist()
    assert len(set(chosen)) == count
    assert chosen == sorted(chosen)
    given_out = [cells[i] for i in chosen]
    most = max(given_out.count(cell) for cell in set(cells))
    for cell in set(cells):
        assert given_out.count(cell) >= min(most - 1, cells.count(cell))


def test_labels_on_every_machine() -> None:
    cells = torch.arange(1000) % 7 % 5
    assert balanced(cells, 10, seed=0).tolist() == [37, 44, 158, 209, 500, 561, 675, 719, 775, 928]


def test_labels_follow_their_seed_and_favour_no_member() -> None:
    cells = torch.zeros(10, dtype=torch.long)
    picked = torch.tensor([balanced(cells, 1, seed).item() for seed in range(1000)])
    assert balanced(cells, 3, 5).equal(balanced(cells, 3, 5))
    # 100 each is expected; chi-squared with 9 degrees of freedom is below 27.9 at odds of 999 in 1000.
    assert ((picked.bincount(minlength=10) - 100) ** 2 / 100).sum() < 27.9


def test_labels_are_hidden_one_by_one_and_never_all_of_an_image() -> None:
    labels = torch.arange(4000.0).reshape(1000, 4)  # of one, two and one column
    hidden = hide(labels, [1, 2, 1], 0.3, seed=0)
    known = ~hidden.isnan()
    assert torch.equal(hidden[known], labels[known])
    assert torch.equal(known[:, 1], known[:, 2])  # the columns of one label go together
    assert known.any(1).all()
    expected = 0.3 + 0.7**3 / 3  # one of three stays where chance would hide all
    assert known[:, [0, 1, 3]].float().mean().item() == pytest.approx(expected, abs=0.03)
    assert torch.equal(hidden.isnan(), hide(labels, [1, 2, 1], 0.3, seed=0).isnan())
    assert not torch.equal(hidden.isnan(), hide(labels, [1, 2, 1], 0.3, seed=1).isnan())
    assert torch.equal(hide(labels, [1, 2, 1], 1.0, seed=0), labels)
