"""Ratios measured side by side: noisy machines cannot be trusted with seconds."""

import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path


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


def beside(
    plain: str,
    candidates: Mapping[str, Callable[[], None]],
    measure: Callable[[Callable[[], None]], float],
    rounds: int,
) -> dict[str, tuple[float, float, float]]:
    """Run commands in turn, several times, in a folder of their own and without a word.

    Args:
        plain: The candidate that the others are compared with.
        candidates: What runs, by name.
        measure: Runs one and says what it took.
        rounds: How often.

    Returns:
        For each the best that it took, that beside the best of `plain`, and the median ratio of a round.
    """
    found: dict[str, list[float]] = {name: [] for name in candidates}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), Path(os.devnull).open("w") as nowhere:
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            with redirect_stdout(nowhere), redirect_stderr(nowhere):
                for _ in range(rounds):
                    for name, candidate in candidates.items():
                        found[name].append(measure(candidate))
        finally:
            os.chdir(before)
    least = found[plain]
    return {
        name: (
            min(times),
            min(times) / min(least),
            statistics.median(a / b for a, b in zip(times, least, strict=True)),
        )
        for name, times in found.items()
    }
