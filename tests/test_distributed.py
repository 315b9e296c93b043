from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from tests.helpers.ranks import start_ranks
from vaezoo.distributed import gather
from vaezoo.functional import covariance


def loss(z: Tensor) -> Tensor:
    return (covariance(gather(z)) - torch.eye(z.shape[1])).square().sum()


def shard(rank: int, port: int, folder: str) -> None:
    world = 2
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=world, rank=rank)
    weight = torch.eye(3).requires_grad_()
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0)).chunk(world)[rank]
    value = loss(x @ weight)
    (gradient,) = torch.autograd.grad(value, weight)
    dist.all_reduce(gradient)  # what DDP does: the mean over ranks
    torch.save((value.detach(), gradient / world), Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


def test_gather_gives_the_loss_and_gradient_of_the_global_batch(tmp_path: Path) -> None:
    weight = torch.eye(3).requires_grad_()
    expected = loss(torch.randn(8, 3, generator=torch.Generator().manual_seed(0)) @ weight)
    (gradient,) = torch.autograd.grad(expected, weight)
    start_ranks(shard, str(tmp_path))
    for rank in range(2):
        value, found = torch.load(tmp_path / f"{rank}.pt")
        torch.testing.assert_close(value, expected.detach(), rtol=1e-6, atol=0)
        assert (found - gradient).norm() / gradient.norm() < 1e-6


def test_gather_of_one_process_is_the_identity() -> None:
    z = torch.randn(3, 2)
    assert gather(z) is z
