"""Pieces of work in threads: their order, and the limits that are lifted again."""

import numpy as np
import pytest
import torch

from vaezoo.metrics import functional as F
from vaezoo.metrics.functional.threads import in_threads, one_core


def test_results_keep_the_order_of_their_pieces() -> None:
    assert in_threads(lambda i: (i, torch.get_num_threads()), range(9), jobs=3) == [(i, 1) for i in range(9)]


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
