"""No step waits for its device: a GPU is kept busy while the host prepares what comes next."""

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback, Trainer

from datamodules.factors import Factor
from datamodules.grids import GridDataModule
from tests.helpers.toy import Numbered
from tests.helpers.valueless import META, Waits, valueless
from tests.helpers.zoo import Make, a_batch, in_order, models
from vaezoo.callbacks import GuardFinite
from vaezoo.cli.main import run
from vaezoo.models import PartedVAE
from vaezoo.models.base import VAE
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
def test_no_step_waits_but_the_first_and_the_last(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first step checks labels; after the last the guard looks at all gradients."""
    model = make()
    batches = in_order([half_labelled(model, seed) for seed in range(STEPS)])
    quiet: dict[str, Any] = {"enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    with valueless(monkeypatch) as waits:
        steps = noted(model, waits)
        Trainer(
            default_root_dir=tmp_path, max_epochs=1, logger=False, callbacks=[GuardFinite()], **quiet
        , accelerator="meta", strategy="meta").fit(model, batches)
    print(steps)
    assert steps[1:-1] == [[]] * (STEPS - 2)


class Noted(VAE):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        Noted.steps = noted(self, Noted.waits)

class Pictures(GridDataModule):
    image_shape, factors, source = (1, 1, 2), (Factor("number", 300),), "render"

    def __init__(self, device_resident: bool) -> None:
        super().__init__(batch_size=4, val_size=10, test_size=10, device_resident=device_resident)

    def open(self) -> Numbered:
        return Numbered(300)


@pytest.mark.parametrize("resident", ["true", "false"])
@pytest.mark.parametrize("bar", [[], ["--trainer.callbacks+=ThroughputBar"]])
def test_cli(resident, bar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    network = '{"class_path": "DenseNetwork", "init_args": {"encoder_widths": [8], "decoder_widths": [8]}}'
    with valueless(monkeypatch) as waits:
        Noted.waits = waits
        assert 0 == run(["fit", "--model=tests.models.test_waiting.Noted", f"--model.network={network}", "--data=tests.models.test_waiting.Pictures", f"--data.device_resident={resident}", "--trainer.max_steps=9", "--trainer.log_every_n_steps=4", "--trainer.limit_val_batches=0", "--trainer.accelerator=meta", "--trainer.strategy=meta", *bar])
    for i, s in enumerate(Noted.steps): print(i, len(s), s[:40])
    assert 0
