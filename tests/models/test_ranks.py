"""Two processes with half a batch each compute what one process computes with the whole."""

import os
import signal
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import torch.distributed as dist
from lightning.pytorch import Callback
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor
from torch.optim.lr_scheduler import ReduceLROnPlateau

from tests.helpers.ranks import start_ranks
from tests.helpers.resuming import Signalled, run, same_end
from tests.helpers.zoo import MODELS, a_batch, in_order, trainer
from vaezoo.callbacks import LocalStatistics
from vaezoo.distributed import gather
from vaezoo.models.base import VAE
from vaezoo.nn.latents import Concrete, Gaussian
from vaezoo.regularizers import ViewAgreement
from vaezoo.types import Batch

pytestmark = pytest.mark.xdist_group("ranks")  # one worker makes what all of them read

WORLD, ROWS, STEPS = 2, 64, 20


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
    ViewAgreement.moved = lambda _, x: x.flip(3)  # type: ignore[method-assign]


def a_model(name: str) -> VAE:
    torch.manual_seed(0)
    model = MODELS[name]()
    model.step += 3  # so that capacities are on their way
    return model


def its_batch(model: VAE, rank: int, world: int, seed: int = 0) -> Batch:
    """A process's rows of a batch: as many labelled ones on each, or labels in the stream, all on the first."""
    whole = a_batch(ROWS, seed, observed=5)
    if any(term.supervised for term in model._terms().values()):
        whole.labelled[1::2] = True
        whole.y[::2], whole.y[1::2] = torch.nan, whole.x[1::2, 0, 0, :3]
    return Batch(*(field[share(rank, world)] for field in whole))


def a_step(model: VAE, batch: Batch, world: int) -> tuple[Tensor, list[Tensor]]:
    torch.manual_seed(1)
    model.zero_grad()
    loss = model.training_step(batch)
    loss.backward()
    gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in model.parameters()]
    if world > 1:  # as DDP does, and as a mean over ranks for the logged loss
        for value in (*gradients, loss.detach()):
            dist.all_reduce(value)
            value /= world
    return loss.detach(), gradients


def first_step(name: str, rank: int, world: int) -> tuple[Tensor, list[Tensor]]:
    model = a_model(name)
    return a_step(model, its_batch(model, rank, world), world)


def followed(name: str, rank: int, world: int) -> tuple[Tensor, Tensor]:
    """Losses of some steps of gradient descent, and how far the parameters went."""
    model, losses = a_model(name), []
    start = torch.cat([p.detach().flatten() for p in model.parameters()])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)  # Adam would make much of rounding at zero gradients
    for seed in range(STEPS):
        losses.append(a_step(model, its_batch(model, rank, world, seed), world)[0])
        optimizer.step()
    return torch.stack(losses), torch.cat([p.detach().flatten() for p in model.parameters()]) - start


def local_loss(rank: int, folder: Path) -> Tensor:
    """Loss of a rank in a run with statistics of its own."""
    model, found = a_model("DIPVAE I"), []

    class Keep(Callback):
        def on_train_batch_end(self, _: object, __: object, outputs: dict[str, Tensor], *___: object) -> None:
            found.append(outputs["loss"])

    fit = trainer(
        folder,
        1,
        enable_checkpointing=False,
        devices=WORLD,
        strategy="ddp",
        callbacks=[LocalStatistics(), Keep()],
    )
    fit.loggers = [CSVLogger(folder, "local", "0")]
    fit.fit(model, in_order([its_batch(model, shard, WORLD) for shard in range(WORLD)]))
    assert len(gather(torch.ones(1))) == WORLD  # only within a training step
    assert rank or "statistics: local" in (folder / "local" / "0" / "hparams.yaml").read_text()
    return found[0]


def alternate(rank: int, world: int, folder: Path) -> list[Tensor]:
    """Parameters of a PartedVAE after three batches, of whose labelled and other rows each process has its share."""
    torch.manual_seed(0)
    model = MODELS["PartedVAE of two variables"]()
    # Plain gradients: Adam would make much of rounding where they are zero.
    parts = [[*model.encoder.parameters(), *model.heads["c"].parameters()], list(model.parameters())]
    optimizers = [torch.optim.SGD(part, lr=1e-4) for part in parts]
    schedulers = [ReduceLROnPlateau(optimizer) for optimizer in optimizers]
    model.configure_optimizers = lambda: (optimizers, schedulers)  # type: ignore[method-assign,assignment,return-value]
    y, batches = torch.arange(ROWS)[share(rank, world), None] % torch.tensor([3, 2]), []
    for seed in range(3):
        stream, known = (a_batch(ROWS, seed + i).x[share(rank, world)] for i in (0, 10))
        labels = torch.cat([torch.full(y.shape, torch.nan), y])
        batch = Batch(torch.cat([stream, known]), labels, ~labels.isnan().any(1))
        batches += [batch] * world  # the loader gives each rank every second one
    options = {"devices": world, "strategy": "ddp"} if world > 1 else {}
    trainer(folder, 3, enable_checkpointing=False, **options).fit(model, in_order(batches))
    return [p.detach() for p in model.parameters()]


def trained(name: str, folder: Path) -> list[Tensor]:
    """Parameters after two steps under DDP in mixed precision, gradients accumulated where Lightning can."""
    torch.manual_seed(0)
    model = MODELS[name]()
    accumulate = 2 if model.automatic_optimization else 1
    fit = trainer(
        folder,
        2,
        enable_checkpointing=False,
        devices=WORLD,
        strategy="ddp",
        precision="bf16-mixed",
        accumulate_grad_batches=accumulate,
    )
    fit.fit(model, in_order([a_batch(ROWS // WORLD, seed) for seed in range(2 * accumulate * WORLD)]))
    assert model.step == 2 * accumulate
    return [p.detach() for p in model.parameters()]


def resumed(rank: int, folder: Path) -> dict[int, tuple[float, float, float]]:
    """Stop both ranks by a signal to the second, and compare with an unbroken run; what callbacks drew in it."""
    os.environ["PL_GLOBAL_SEED"] = "3"
    ddp = {"devices": WORLD, "strategy": "ddp"}
    unbroken = run("FactorVAE", folder / "unbroken", **ddp)
    stop = [Signalled(signal.SIGTERM, 2)] if rank else [Callback()]
    stopped = run("FactorVAE", folder / "first", None, *stop, **ddp)
    assert stopped.model.step == 2
    same_end(unbroken, run("FactorVAE", folder / "second", folder / "first" / "checkpoints" / "last.ckpt", **ddp), 2)
    del os.environ["PL_GLOBAL_SEED"]
    return unbroken.drawn


class Found(NamedTuple):
    steps: dict[str, tuple[Tensor, list[Tensor]]]
    alternated: list[Tensor]
    fits: dict[str, list[Tensor]]
    followed: dict[str, tuple[Tensor, Tensor]]
    local: Tensor
    drawn: dict[int, tuple[float, float, float]]


def process(rank: int, port: int, folder: str) -> None:
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=WORLD, rank=rank)
    os.environ |= {"LOCAL_RANK": str(rank), "NODE_RANK": "0"}  # so that a Trainer knows its place
    drawn = resumed(rank, Path(folder))
    share_noise(rank, WORLD)
    steps = {name: first_step(name, rank, WORLD) for name in MODELS}
    ways = {name: followed(name, rank, WORLD) for name in MODELS}
    fits = {name: trained(name, Path(folder)) for name in MODELS}
    local = local_loss(rank, Path(folder))
    found = Found(steps, alternate(rank, WORLD, Path(folder)), fits, ways, local, drawn)
    torch.save(tuple(found), Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Found]:
    folder = tmp_path_factory.mktemp("ranks")
    start_ranks(process, str(folder), ranks=WORLD)
    return [Found(*torch.load(folder / f"{rank}.pt")) for rank in range(WORLD)]


def put_back(patch: pytest.MonkeyPatch) -> None:
    """Let what `share_noise` replaces be put back afterwards."""
    for owner, name in ((Gaussian, "rsample"), (Concrete, "rsample"), (ViewAgreement, "moved")):
        patch.setattr(owner, name, getattr(owner, name))


@pytest.fixture
def shared_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    put_back(monkeypatch)
    share_noise(0, 1)


@pytest.mark.usefixtures("shared_noise")
@pytest.mark.parametrize("name", MODELS)
def test_loss_and_gradients_equal_those_of_one_process(name: str, two_ranks: list[Found]) -> None:
    loss, gradients = first_step(name, 0, 1)
    expected = torch.cat([gradient.flatten() for gradient in gradients])
    for rank in two_ranks:
        torch.testing.assert_close(rank.steps[name][0], loss, rtol=1e-5, atol=1e-5)
        found = torch.cat([gradient.flatten() for gradient in rank.steps[name][1]])
        assert (found - expected).norm() / expected.norm() < 1e-5


@pytest.mark.usefixtures("shared_noise")
@pytest.mark.parametrize("name", MODELS)
def test_two_processes_follow_one_for_twenty_steps(name: str, two_ranks: list[Found]) -> None:
    """Losses within 1e-5 of each other, parameters within 1e-3 of the way they went."""
    losses, way = followed(name, 0, 1)
    for rank in two_ranks:
        torch.testing.assert_close(rank.followed[name][0], losses, rtol=1e-5, atol=1e-5)
        assert (rank.followed[name][1] - way).norm() / way.norm() < 1e-3


@pytest.mark.usefixtures("shared_noise")
def test_statistics_may_be_local(two_ranks: list[Found]) -> None:
    """That the run's hyperparameters say so was asserted in the processes."""
    model = a_model("DIPVAE I")
    whole = its_batch(model, 0, 1)
    assert two_ranks[0].local != two_ranks[1].local
    for rank, found in enumerate(two_ranks):
        with pytest.MonkeyPatch.context() as patch:
            put_back(patch)
            share_noise(rank, WORLD)  # its rows of the noise, in one process
            alone = model.training_step(Batch(*(field[share(rank, WORLD)] for field in whole)))
        torch.testing.assert_close(found.local, alone.detach(), rtol=1e-5, atol=0)


@pytest.mark.usefixtures("shared_noise")
def test_supervised_and_full_steps_under_ddp_equal_those_of_one_process(two_ranks: list[Found], tmp_path: Path) -> None:
    torch.manual_seed(0)
    start = torch.cat([p.detach().flatten() for p in MODELS["PartedVAE of two variables"]().parameters()])
    expected = torch.cat([p.flatten() for p in alternate(0, 1, tmp_path)]) - start
    for rank in two_ranks:
        found = torch.cat([p.flatten() for p in rank.alternated]) - start
        assert (found - expected).norm() / expected.norm() < 1e-4


@pytest.mark.parametrize("name", MODELS)
def test_every_model_trains_under_ddp_in_mixed_precision(name: str, two_ranks: list[Found]) -> None:
    torch.manual_seed(0)
    start = list(MODELS[name]().parameters())
    first, second = (rank.fits[name] for rank in two_ranks)
    assert all(torch.equal(*pair) for pair in zip(first, second, strict=True))
    assert all(p.isfinite().all() for p in first)
    assert sum(not torch.equal(*pair) for pair in zip(first, start, strict=True)) > len(start) / 2


def test_ranks_draw_different_noise(two_ranks: list[Found]) -> None:
    """That a run of two ranks continues exactly, and that a signal to one stops both, was asserted in the processes."""
    first, second = (rank.drawn for rank in two_ranks)
    assert first.keys() == second.keys()
    assert len({value for rank in two_ranks for drawn in rank.drawn.values() for value in drawn}) == 2 * 3 * len(first)
