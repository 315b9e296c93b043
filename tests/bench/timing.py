"""Ratios measured side by side: noisy machines cannot be trusted with seconds."""

import time
from collections.abc import Callable


def best_of(candidates: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Run all candidates in turn, several times; the best time of each, in seconds.

    Interleaving spreads whatever else the machine does over all of them.
    """
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(rounds):
        for name, candidate in candidates.items():
            start = time.perf_counter()
            candidate()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
