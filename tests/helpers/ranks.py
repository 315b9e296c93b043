"""Processes that compute together."""

import multiprocessing
import socket
from collections.abc import Callable
from typing import Any

import torch.multiprocessing as mp

IMPORTED = ["tests.helpers.zoo", "tests.helpers.resuming", "vaezoo.cli.main", "vaezoo.metrics"]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def start_ranks(work: Callable[..., None], *args: Any, ranks: int = 2) -> None:
    """Call `work(rank, port, *args)` in as many processes, and wait for them.

    They fork from a server that has imported everything once: importing takes longer than what most of them do.
    """
    multiprocessing.get_context("forkserver").set_forkserver_preload(IMPORTED)
    mp.start_processes(work, args=(free_port(), *args), nprocs=ranks, start_method="forkserver")
