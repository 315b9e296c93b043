"""Pieces of work in threads: their order, and the limits that are lifted again."""

import os
import time
from threading import get_ident

import numpy as np
import pytest
import torch

from vaezoo.metrics import functional as F
from vaezoo.metrics.functional.threads import as_they_come, in_threads, one_core


def _met(_: int) -> int:
    time.sleep(0.2)  # long enough for another thread to take the next piece
    return get_ident()


def test_results_keep_the_order_of_their_pieces() -> None:
    assert in_threads(lambda i: (i, torch.get_num_threads()), range(9), jobs=3) == [(i, 1) for i in range(9)]


def test_a_single_job_keeps_to_one_core() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert in_threads(lambda _: torch.get_num_threads(), range(2), jobs=1) == [1, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_piece_of_many_runs_its_own_pieces_in_its_own_thread() -> None:
    def inner(i: int) -> set[int]:
        return set(in_threads(lambda _: get_ident(), range(4), jobs=4)) | {get_ident()}

    assert all(len(threads) == 1 for threads in in_threads(inner, range(os.cpu_count() or 1), jobs=2))
    (threads,) = in_threads(lambda i: set(in_threads(_met, range(2), jobs=2)), [0])
    assert len(threads) == (2 if (os.cpu_count() or 1) > 1 else 1)  # a lone piece may use the other cores


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
