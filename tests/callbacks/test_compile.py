"""Compiled training steps: one graph each, the losses and gradients of eager ones.

Tolerances: 1e-5 of the loss, and 1e-5 of the norm of all gradients. Fused kernels sum in another order.
"""

import copy
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from torch._dynamo.utils import counters

import vaezoo
from tests.helpers.ranks import start_ranks
from tests.helpers.zoo import MODELS, NETWORK, SHAPE, a_batch, in_order, loader, trainer
from vaezoo.callbacks import AddRegularizer, Compile
from vaezoo.callbacks.compile import LONG_RUN, planned_batches
from vaezoo.models import PartedVAE
from vaezoo.models.base import VAE
from vaezoo.regularizers import KL, Capacity, CovarianceMatching, DiscriminatedTotalCorrelation
from vaezoo.types import Batch

FAST = ("LaRVAE",)  # the other fast test compiles a BetaVAE
every_model = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in MODELS]
)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def graphs() -> int:
    assert not counters["graph_break"]
    return int(counters["stats"]["unique_graphs"])


def a_step(model: VAE, batch: Batch) -> tuple[Tensor, Tensor]:
    """Loss and gradients of a batch with noise that is always the same."""
    model.zero_grad()
    torch.manual_seed(1)
    loss = model.training_step(batch)
    if isinstance(model, PartedVAE):
        sizes = torch.tensor(model.classes.sizes)
        loss = loss + model.supervised(batch.x, torch.arange(len(batch.x))[:, None] % sizes + 0.0)[0]
    loss.backward()
    return loss.detach(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def a_training_batch(model: VAE, seed: int, labelled: int = 4) -> Batch:
    """Rows of the stream, some of which may hold their own labels, or labelled rows after them."""
    batch = a_batch(8, seed, observed=5)
    if any(term.supervised for term in model._terms().values()):
        batch.y[:] = batch.x[:, 0, 0, :3]
        batch.labelled[8 - labelled :] = True
        batch.y[: 8 - labelled] = torch.nan
    return batch


def both(name: str, folder: Path) -> tuple[VAE, VAE]:
    torch.manual_seed(0)
    eager = MODELS[name]()
    compiled = copy.deepcopy(eager)
    Compile().setup(trainer(folder, 1), compiled, "fit")
    return eager, compiled


def assert_same_step(eager: VAE, compiled: VAE, batch: Batch) -> None:
    (loss, gradient), (found, gradient_found) = a_step(eager, batch), a_step(compiled, batch)
    torch.testing.assert_close(found, loss, rtol=1e-5, atol=0)
    assert (gradient_found - gradient).norm() < 1e-5 * gradient.norm()


@every_model
@pytest.mark.timeout(1200)
def test_compiled_equals_eager_in_one_graph(name: str, tmp_path: Path) -> None:
    eager, compiled = both(name, tmp_path)
    for seed in range(3):  # schedules and running estimates move from one to the next
        assert_same_step(eager, compiled, a_training_batch(eager, seed))
    assert graphs() == len(eager.hot_path)
    for size in (3, 2):  # evaluation is not compiled
        terms, found = eager.eval().terms(a_batch(size)), compiled.eval().terms(a_batch(size))
        torch.testing.assert_close([t.loss for t in found.values()], [t.loss for t in terms.values()])
    assert graphs() == len(eager.hot_path)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_numbers_of_labelled_rows_that_change_are_compiled_a_few_times(tmp_path: Path) -> None:
    eager, compiled = both("LaRVAE", tmp_path)
    for seed, labelled in enumerate([4, 3, 5, 0, 1, 7, 2, 6]):
        assert_same_step(eager, compiled, a_training_batch(eager, seed, labelled))
    assert graphs() <= 6  # four rows, any number, none and one on either side


@pytest.mark.parametrize("precision", ["32-true", pytest.param("bf16-mixed", marks=pytest.mark.slow)])
def test_checkpoints_go_both_ways(precision: str, tmp_path: Path) -> None:
    """Compiled runs and others continue each other, and both end where an eager run does."""
    files = {}
    term = Capacity("z", 5.0, 3.0, 0)
    for kind in ("eager", "compiled"):
        torch.manual_seed(0)
        model = MODELS["BetaVAE"]()
        callbacks = [AddRegularizer("more", term), *([Compile()] if kind == "compiled" else [])]
        fit = trainer(tmp_path, 2, callbacks=callbacks, enable_checkpointing=False, precision=precision)
        fit.fit(model, loader(4), val_dataloaders=in_order([a_batch(3), a_batch(2)]))
        files[kind] = tmp_path / f"{kind}.ckpt"
        fit.save_checkpoint(files[kind])
    assert graphs() == 1
    assert "objective" not in vars(model)
    ends = []
    for start in files:
        callbacks = [Compile()] if start == "eager" else []
        torch.manual_seed(3)
        model = MODELS["BetaVAE"]()
        fit = trainer(tmp_path, 4, callbacks=callbacks, enable_checkpointing=False, precision=precision)
        torch.manual_seed(3)
        fit.fit(model, loader(4), ckpt_path=files[start], weights_only=True)
        assert model.step == 4
        ends.append(model.state_dict())
    assert vaezoo.load(files["compiled"]).state_dict().keys() == vaezoo.load(files["eager"]).state_dict().keys()
    torch.testing.assert_close(*ends, rtol=1e-3, atol=1e-5 if precision == "32-true" else 2e-3)


def test_a_copy_of_a_compiled_model_calls_itself(tmp_path: Path) -> None:
    _, compiled = both("VAE", tmp_path)
    assert copy.deepcopy(compiled).objective.__self__ is not compiled  # type: ignore[attr-defined]


def test_errors_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="needs a vaezoo VAE"):
        Compile().setup(trainer(tmp_path, 1), LightningModule(), "fit")
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(RuntimeError, match="needs a C\\+\\+ compiler and 'no-such-compiler' is not on the PATH"):
        Compile().setup(trainer(tmp_path, 1), MODELS["VAE"](), "fit")


def a_long_run(folder: Path, steps: int, *, start: Path | None = None, limit: int = LONG_RUN) -> tuple[Compile, VAE]:
    """A few steps of a run that is to have many, with the automatic choice."""
    torch.manual_seed(0)
    choice, model = Compile("auto"), MODELS["VAE"]()
    until = StopAt(steps)
    fit = trainer(folder, limit, callbacks=[choice, until], enable_checkpointing=False)
    fit.fit(model, loader(4), ckpt_path=start, weights_only=True)
    fit.save_checkpoint(folder / "choice.ckpt")
    return choice, model


class StopAt(Callback):
    def __init__(self, steps: int) -> None:
        self.steps = steps

    def on_train_batch_end(self, trainer: Trainer, *args: object) -> None:
        trainer.should_stop = trainer.global_step >= self.steps


def test_auto_compiles_long_runs_and_a_resumed_one_repeats_the_choice(tmp_path: Path) -> None:
    choice, _ = a_long_run(tmp_path, 2, limit=LONG_RUN - 1)
    assert choice.compiled is False
    assert graphs() == 0
    choice, _ = a_long_run(tmp_path, 3, start=tmp_path / "choice.ckpt")  # long by now, and begun without
    assert choice.compiled is False
    assert graphs() == 0
    choice, _ = a_long_run(tmp_path, 2)
    assert choice.compiled
    assert graphs() == 1
    choice, _ = a_long_run(tmp_path, 3, start=tmp_path / "choice.ckpt", limit=4)  # short by now, and begun so
    assert choice.compiled


def test_auto_goes_on_without_a_compiler_or_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, eager = a_long_run(tmp_path, 2, limit=2)
    monkeypatch.setenv("CXX", "no-such-compiler")
    choice, model = a_long_run(tmp_path, 2)
    assert choice.compiled is False
    broken = tmp_path / "broken-compiler"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", (str(broken),))
    monkeypatch.setattr("torch._inductor.config.force_disable_caches", True)
    with pytest.warns(UserWarning, match="compiling failed, training continues without it: "):
        choice, model = a_long_run(tmp_path, 2)
    assert choice.compiled is False
    torch.testing.assert_close(model.state_dict(), eager.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("limits", "batches"),
    [
        ({"max_steps": 30, "max_epochs": -1}, 30),
        ({"max_steps": 30, "max_epochs": -1, "accumulate_grad_batches": 2}, 60),
        ({"max_steps": -1, "max_epochs": 3}, 12),
        ({"max_steps": 5, "max_epochs": 3}, 5),
        ({"max_steps": -1, "max_epochs": -1, "max_time": "01:00:00:00"}, math.inf),
    ],
)
def test_planned_batches(limits: dict[str, Any], batches: float, tmp_path: Path) -> None:
    seen = []

    class Look(Callback):
        def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
            seen.append(planned_batches(trainer))
            trainer.should_stop = True

    options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "callbacks": [Look()]}
    Trainer(accelerator="cpu", default_root_dir=tmp_path, enable_model_summary=False, **options, **limits).fit(
        MODELS["VAE"](), loader(4)
    )
    assert seen == [batches]


def gathering() -> VAE:
    terms = {"kl": KL(), "cov": CovarianceMatching(), "tc": DiscriminatedTotalCorrelation(width=8, depth=1)}
    return VAE(SHAPE, regularizers=terms, network=NETWORK)


def process(rank: int, port: int, folder: str) -> None:
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=2, rank=rank)
    os.environ |= {"LOCAL_RANK": str(rank), "NODE_RANK": "0"}
    ends = []
    for callbacks in ([], [Compile()]):
        torch.manual_seed(0)
        model = gathering()
        options = {"devices": 2, "strategy": "ddp", "callbacks": callbacks, "enable_checkpointing": False}
        torch.manual_seed(rank)
        trainer(Path(folder), 3, **options).fit(model, in_order([a_batch(4, seed) for seed in range(6)]))
        ends.append([p.detach() for p in model.parameters()])
    assert graphs() == 1
    torch.save(ends, Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


@pytest.mark.slow
def test_ranks_exchange_statistics_within_the_graph(tmp_path: Path) -> None:
    start_ranks(process, str(tmp_path))
    for rank in range(2):
        eager, compiled = torch.load(tmp_path / f"{rank}.pt")
        torch.testing.assert_close(compiled, eager, rtol=1e-4, atol=1e-5)
