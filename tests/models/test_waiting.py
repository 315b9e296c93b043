"""No step waits for its device: a GPU is kept busy while the host prepares what comes next."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from lightning.pytorch import Trainer
from torch import Tensor

from tests.helpers.toy import ToyDataModule
from tests.helpers.valueless import META, Waits, valueless
from tests.helpers.zoo import MODELS, Make, a_batch, in_order, models
from vaezoo.callbacks import GuardFinite
from vaezoo.cli.main import run
from vaezoo.models import PartedVAE
from vaezoo.models.base import VAE
from vaezoo.nn.networks import DenseNetwork, Shape
from vaezoo.types import Batch, indices

STEPS = 6


def half_labelled(model: VAE, seed: int) -> Batch:
    """The last images carry labels: one-hot ones, or as many classes as PartedVAE has discrete variables."""
    batch = a_batch(seed=seed, observed=4)
    labelled = torch.arange(len(batch.x)) >= 4
    y = batch.y.flip(0)
    if isinstance(model, PartedVAE):
        y = y[:, : len(model.classes.sizes)]
    return Batch(batch.x, y, labelled)


def noted(model: VAE, waits: Waits) -> list[list[str]]:
    """A list that gets what each step waits for, the transfer of its batch first; what is before the first is left out.

    The model notes it, as a callback would read, and so let the model log, what every step has to say.
    """
    found: list[list[str]] = []
    transfer = model.on_before_batch_transfer

    def on_before_batch_transfer(batch: Any, dataloader_idx: int) -> Any:
        assert model.device == META
        before = waits.look()
        if found:
            found[-1] += before
        found.append([])
        return transfer(batch, dataloader_idx)

    model.on_before_batch_transfer = on_before_batch_transfer  # type: ignore[method-assign]
    return found


@models
def test_no_step_waits_but_the_first_and_the_last(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step checks labels; the last is logged."""
    model = make()
    batches = in_order([half_labelled(model, seed) for seed in range(STEPS)])
    quiet: dict[str, Any] = {"enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    quiet |= {"default_root_dir": tmp_path, "logger": False, "max_epochs": 1, "callbacks": [GuardFinite()]}
    with valueless(monkeypatch) as waits:
        steps = noted(model, waits)
        Trainer(accelerator="meta", strategy="meta", **quiet).fit(model, batches)
    assert steps[1:-1] == [[]] * (STEPS - 2)


class NotedVAE(VAE):
    """Notes what its steps wait for."""

    waits: ClassVar[Waits]
    steps: ClassVar[list[list[str]]]

    def __init__(self, image_shape: Shape) -> None:
        super().__init__(image_shape, network=DenseNetwork([8], [8]))
        NotedVAE.steps = noted(self, NotedVAE.waits)


class Resident(ToyDataModule):
    """Pictures that lie on the device."""

    def __init__(self) -> None:
        super().__init__(device_resident=True)


@pytest.mark.parametrize("data", [ToyDataModule, Resident])
def test_the_command_line_waits_only_in_steps_that_it_logs(
    data: type[ToyDataModule], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its guard, bar, log and checkpoints, wherever the pictures lie."""
    monkeypatch.chdir(tmp_path)
    classes = [f"--model={__name__}.NotedVAE", f"--data={data.__module__}.{data.__name__}"]
    classes += ["--trainer.callbacks+=ThroughputBar"]
    limits = ["--trainer.max_steps=9", "--trainer.log_every_n_steps=4", "--trainer.limit_val_batches=0"]
    device = ["--trainer.accelerator=meta", "--trainer.strategy=meta"]
    with valueless(monkeypatch) as waits:
        NotedVAE.waits = waits
        assert run(["fit", *classes, *limits, *device]) == 0
    waiting = [step for step, found in enumerate(NotedVAE.steps[:-1], 1) if found]
    assert [step for step in waiting if step > 1] == [4, 8]  # pictures become resident in the first


@pytest.mark.parametrize(
    "wait",
    [
        lambda x: x.sum().item(),
        lambda x: x.cpu(),
        lambda x: x.tolist(),
        lambda x: bool(x.sum()),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: x[torch.ones(len(x), dtype=torch.bool)],
        lambda x: x.to("cpu", non_blocking=True),
        lambda x: torch.equal(x, x),
        lambda x: torch.ones(3).to(x.device),
        lambda x: torch.tensor([1.0, 2.0], device=x.device),
        lambda x: torch.ones(3)[x.long()],
    ],
)
def test_whatever_waits_is_noted(wait: Callable[[Tensor], object], monkeypatch: pytest.MonkeyPatch) -> None:
    with valueless(monkeypatch) as waits:
        x = torch.ones(3, device=META)
        (x.exp() + 1).sum()
        x[indices(torch.ones(3, dtype=torch.bool), META)]
        assert waits.look() == []
        wait(x)
        assert waits.look()


def test_rows_are_those_of_the_mask() -> None:
    batch = half_labelled(MODELS["VAE"](), seed=0)
    mask = torch.tensor([True, False, False, True, False, True, False, False])
    for part, rows in zip(batch, batch.at(mask), strict=True):
        torch.testing.assert_close(rows, part[mask], equal_nan=True, rtol=0, atol=0)
