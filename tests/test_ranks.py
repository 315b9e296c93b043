"""Two processes with half a batch each compute what one process computes with the whole."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor

from tests.test_distributed import free_port
from tests.zoo import MODELS, a_batch
from vaezoo.latents import Concrete, Gaussian
from vaezoo.types import Batch

WORLD, ROWS = 2, 8


def share(rank: int, world: int) -> slice:
    return slice(rank * ROWS // world, (rank + 1) * ROWS // world)


def share_noise(rank: int, world: int) -> None:
    """Let every process take its rows of one noise tensor."""

    def noise(like: Tensor) -> Tensor:
        whole = torch.rand(ROWS, *like.shape[1:], generator=torch.Generator().manual_seed(5))
        return whole[share(rank, world)]

    Gaussian.rsample = lambda q: q.mean + (q.logvar / 2).exp() * (noise(q.mean) * 4 - 2)  # type: ignore[method-assign]
    Concrete.rsample = lambda q: torch.cat(  # type: ignore[method-assign]
        [((logits - (-noise(logits).log()).log()) / q.temperature).softmax(-1) for logits in q.logits], 1
    )


def first_step(name: str, rank: int, world: int) -> tuple[Tensor, list[Tensor]]:
    torch.manual_seed(0)
    model = MODELS[name]()
    model.step += 3  # so that capacities are on their way
    rows = share(rank, world)
    batch = Batch(*(field[rows] for field in a_batch(ROWS, observed=5)))
    torch.manual_seed(1)
    loss = model.training_step(batch)
    loss.backward()
    gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in model.parameters()]
    if world > 1:  # as DDP does, and as a mean over ranks for the logged loss
        for value in (*gradients, loss.detach()):
            dist.all_reduce(value)
            value /= world
    return loss.detach(), gradients


def process(rank: int, port: int, folder: str) -> None:
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=WORLD, rank=rank)
    share_noise(rank, WORLD)
    torch.save({name: first_step(name, rank, WORLD) for name in MODELS}, Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, tuple[Tensor, list[Tensor]]]]:
    folder = tmp_path_factory.mktemp("ranks")
    mp.spawn(process, args=(free_port(), str(folder)), nprocs=WORLD)
    return [torch.load(folder / f"{rank}.pt") for rank in range(WORLD)]


@pytest.mark.parametrize("name", MODELS)
def test_loss_and_gradients_equal_those_of_one_process(
    name: str, two_ranks: list[dict[str, tuple[Tensor, list[Tensor]]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Gaussian, "rsample", Gaussian.rsample)  # to be put back afterwards
    monkeypatch.setattr(Concrete, "rsample", Concrete.rsample)
    share_noise(0, 1)
    loss, gradients = first_step(name, 0, 1)
    expected = torch.cat([gradient.flatten() for gradient in gradients])
    for rank in two_ranks:
        torch.testing.assert_close(rank[name][0], loss, rtol=1e-5, atol=1e-5)
        found = torch.cat([gradient.flatten() for gradient in rank[name][1]])
        assert (found - expected).norm() / expected.norm() < 1e-5
