"""Run jobs in threads, each on one core."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import RLock, local
from typing import TypeVar

import torch
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]

Piece = TypeVar("Piece")
Found = TypeVar("Found")

_lock = RLock()
_users = 0
_limits = ExitStack()
_thread = local()


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_core() -> Iterator[None]:
    """Keep BLAS and torch from splitting their work among threads.

    Tables this thin gain nothing from it, and on a busy machine BLAS takes ten times as long to wait for its threads.
    The limits are the process's, so the first to come sets them and the last to go lifts them.
    """
    global _users
    with _lock:
        _users += 1
        if _users == 1:
            _limits.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
            _limits.enter_context(_libraries().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limits.close()


def free_cores(jobs: int = -1) -> int:
    """Number of threads that `in_threads` would use here: one in a piece of its own."""
    return 1 if getattr(_thread, "is_one_of_many", False) else jobs if jobs > 0 else os.cpu_count() or 1


def in_threads(work: Callable[[Piece], Found], pieces: Iterable[Piece], jobs: int = -1) -> list[Found]:
    """Run functions in `jobs` threads, -1 for one per core; return the results in order.

    Where pieces keep all cores busy, a piece that calls this again runs its own in its own thread.
    """
    pieces, cores = list(pieces), free_cores(jobs)
    if cores == 1:
        with one_core():
            return [work(piece) for piece in pieces]

    def mark() -> None:
        _thread.is_one_of_many = len(pieces) >= (os.cpu_count() or 1)

    with one_core(), ThreadPoolExecutor(cores, initializer=mark) as threads:
        return list(threads.map(work, pieces))


def as_they_come(work: Callable[[Piece], Found], pieces: Iterable[Piece], jobs: int = -1) -> Iterator[Found]:
    """Yield what `in_threads` returns. Pieces are taken a few ahead of the results, so they need not all fit memory."""
    jobs = free_cores(jobs)
    waiting: deque[Future[Found]] = deque()
    with one_core(), ThreadPoolExecutor(jobs) as threads:
        try:
            for piece in pieces:
                waiting.append(threads.submit(work, piece))
                if len(waiting) > 2 * jobs:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for left in waiting:
                left.cancel()
