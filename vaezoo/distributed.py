"""Differentiable gather across ranks, for batch-level terms."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

_local = False


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        shards = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(shards, x.contiguous())
        return torch.cat(shards)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        grad = grads[0].contiguous()
        # Every rank holds the same loss of the global batch; DDP then averages over ranks, so this must sum.
        dist.all_reduce(grad)
        return grad.chunk(dist.get_world_size())[dist.get_rank()]


def gather(x: Tensor) -> Tensor:
    """Concatenate x over all ranks along the batch, with gradients. Returns x itself with one process.

    A covariance, total correlation or absolute value of a batch mean is not linear in the batch, so averaging its
    gradient over ranks is biased. Gather its inputs first: DDP's average is then the gradient of the global batch.

    Args:
        x: (B, …), the same size on every rank.

    Returns:
        (world · B, …), in rank order; x itself inside `local_statistics`.
    """
    if _local or not _several():
        return x
    gathered: Tensor = _Gather.apply(x)
    return gathered


@contextmanager
def local_statistics() -> Iterator[None]:
    """Compute statistics per rank: inside this context, `gather` returns its input."""
    global _local
    before, _local = _local, True
    try:
        yield
    finally:
        _local = before


def same_on_all_ranks(x: Tensor) -> Tensor:
    """Rank 0's x on every rank, without gradients; for noise that all ranks must share."""
    if _several():
        # A sum in which the other ranks are zero: unlike a broadcast, torch.compile can take it into its graph.
        x = torch.zeros_like(x) if dist.get_rank() else x.detach().clone()
        dist.all_reduce(x)
    return x


def _several() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
