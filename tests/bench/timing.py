"""Ratios measured side by side: noisy machines cannot be trusted with seconds."""

import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple, TypeVar

Result = TypeVar("Result")


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


class Compared(NamedTuple):
    """What a candidate took in some rounds, and its ratios to another in the same rounds."""

    best: float
    ratio: float
    """Of the best of each."""
    median: float
    """Of the rounds' ratios."""
    least: float
    most: float


def compared(plain: str, found: Mapping[str, Sequence[float]]) -> dict[str, Compared]:
    """Compare what candidates took, one number a round each, with what `plain` took."""
    rows = {}
    for name, times in found.items():
        ratios = [a / b for a, b in zip(times, found[plain], strict=True)]
        ratio = min(times) / min(found[plain])
        rows[name] = Compared(min(times), ratio, statistics.median(ratios), min(ratios), max(ratios))
    return rows


def beside(
    plain: str,
    candidates: Mapping[str, Callable[[], Result]],
    measure: Callable[[Callable[[], Result]], float],
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
    return {name: row[:3] for name, row in compared(plain, found).items()}
