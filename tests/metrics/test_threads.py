"""Pieces of work in threads: their order, and the limits that are lifted again."""

import numpy as np
import pytest
import torch

from vaezoo.metrics import functional as F
from vaezoo.metrics.functional.threads import as_they_come, in_threads, one_core


def test_results_keep_the_order_of_their_pieces() -> None:
    assert in_threads(lambda i: (i, torch.get_num_threads()), range(9), jobs=3) == [(i, 1) for i in range(9)]


def test_results_that_come_one_by_one_keep_their_order_and_take_few_pieces_ahead() -> None:
    taken: list[int] = []
    results = as_they_come(lambda i: (i, torch.get_num_threads()), (taken.append(i) or i for i in range(50)), jobs=2)
    assert next(results) == (0, 1)
    assert len(taken) == 5
    assert list(results) == [(i, 1) for i in range(1, 50)]


def test_an_error_of_one_piece_comes_in_its_turn_and_lifts_the_limits() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        results = as_they_come(lambda i: 1 / i, range(3, -50, -1), jobs=1)
        assert [next(results) for _ in range(3)] == [1 / 3, 1 / 2, 1]
        with pytest.raises(ZeroDivisionError):
            next(results)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_limits_are_lifted_by_the_last_to_go_and_after_an_error() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_core():
            with one_core():
                pass
            assert torch.get_num_threads() == 1
        with pytest.raises(ZeroDivisionError):
            in_threads(lambda i: 1 / i, [1, 0])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_an_interval_takes_the_score_that_is_known_and_fits_no_pool_twice() -> None:
    codes, pools = np.random.default_rng(0).normal(size=(50, 2)), []

    def mean(z: np.ndarray) -> dict[str, float]:
        pools.append(len(z))
        return {"mean": float(z.mean())}

    known = F.bootstrap(mean, codes, resamples=5, scores={"mean": float(codes.mean())})
    assert len(pools) == 5
    assert known == F.bootstrap(mean, codes, resamples=5)
