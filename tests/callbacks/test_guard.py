"""A loss or gradient that is not finite stops the run or is skipped, and never reaches a checkpoint."""

import csv
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins.precision import MixedPrecision
from torch import Tensor

import vaezoo
from tests.helpers.harness import attempt
from tests.helpers.paths import ROOT
from tests.helpers.ranks import start_ranks
from tests.helpers.toy import Numbered, ToyDataModule, ids_of
from tests.helpers.zoo import MODELS, Make, a_batch, in_order, models, trainer
from vaezoo.callbacks import BestCheckpoint, GuardFinite, LastCheckpoint, NonFiniteError
from vaezoo.cli.main import run
from vaezoo.models import BetaVAE
from vaezoo.models.base import VAE
from vaezoo.nn.networks import DenseNetwork
from vaezoo.regularizers import Regularizer
from vaezoo.types import Batch, Forward, Term

BAD = 3  # the batch, or picture, that is spoilt


class BadGradient(torch.autograd.Function):
    """0, with a gradient of NaN."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.sum() * 0

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return torch.full((8, 4), math.nan)


class Spoilt(Regularizer):
    """0 at most steps; at the others infinite, without a gradient, or 0 with a gradient of NaN."""

    def __init__(self, how: str = "value", steps: tuple[int, ...] = (BAD,)) -> None:
        super().__init__()
        self.how, self.steps = how, steps

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        mean = out.posterior["z"].mode()
        if int(step) not in self.steps:
            return Term(mean.new_zeros(()), {})
        return Term(mean.new_tensor(math.inf) if self.how == "value" else BadGradient.apply(mean), {})


def spoilt(how: str = "value", steps: tuple[int, ...] = (BAD,)) -> VAE:
    torch.manual_seed(0)
    return BetaVAE((1, 16, 16), 4, regularizers={"mine": Spoilt(how, steps)}, network=DenseNetwork((32,), (32,)))


def batches(count: int = 6, bad: tuple[int, ...] = ()) -> list[Batch]:
    found = [a_batch(8, seed) for seed in range(count)]
    for i in bad:
        found[i].x[2, 0, 4, 4] = math.nan
    return found


def finite(path: Path) -> bool:
    state = torch.load(path, weights_only=True)["state_dict"]
    return all(bool(value.isfinite().all()) for value in state.values())


def weights(model: VAE) -> list[Tensor]:
    return [p.detach() for p in model.parameters()]


def fit(folder: Path, model: VAE, data: list[Batch], guard: GuardFinite, steps: int = 6, **options: Any) -> Trainer:
    callbacks = [guard, LastCheckpoint(2), *options.pop("callbacks", [])]
    found = trainer(folder, steps, callbacks=callbacks, **options)
    torch.manual_seed(1)
    found.fit(model, in_order(data))
    return found


@models
def test_every_model_stops_before_the_update_and_keeps_a_good_checkpoint(make: Make, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = make()
    with pytest.raises(
        NonFiniteError, match=rf"step {BAD}, epoch 0: train/recon, .*images: {BAD} \(1 ids in .*jsonl\)"
    ):
        fit(tmp_path, model, batches(bad=(BAD,)), GuardFinite())
    assert all(p.isfinite().all() for p in model.parameters())
    assert finite(tmp_path / "checkpoints" / "last.ckpt")
    kept = vaezoo.load(tmp_path / "checkpoints" / "last.ckpt")
    torch.manual_seed(0)
    good = make()
    fit(tmp_path / "good", good, batches(), GuardFinite(), 2)  # what was saved last
    assert all(torch.equal(*pair) for pair in zip(weights(kept), weights(good), strict=True))


def finite_buffers(model: VAE) -> bool:
    return all(bool(buffer.isfinite().all()) for buffer in model.buffers())


@pytest.mark.parametrize(
    ("how", "name"),
    [("value", "train/mine;"), ("gradient", "gradient of encoder.1.weight, gradient of encoder.1.bias")],
)
def test_the_message_names_term_or_gradient(how: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(NonFiniteError, match=f"not finite at step {BAD}, epoch 0: {name}") as error:
        fit(tmp_path, spoilt(how), batches(), GuardFinite())
    assert "\n" not in str(error.value)


def test_ids_of_all_images_of_the_batch_are_on_file(tmp_path: Path) -> None:
    class Broken(Numbered):
        def images(self, ids: Tensor) -> Tensor:
            pictures = super().images(ids).float()
            pictures[ids == broken] = math.nan
            return pictures

    class Data(ToyDataModule):
        def open(self) -> Numbered:
            return Broken(120)

    data = Data(labels=10, labelled_batch_size=4)
    data.setup()
    broken = int(data.train_ids[-1])
    seen: list[list[int]] = []

    class See(Callback):
        def on_train_batch_start(self, trainer: Trainer, pl_module: VAE, batch: Batch, batch_idx: int) -> None:  # type: ignore[override]
            seen.append(ids_of(batch.x.nan_to_num(0.0)))

    model = BetaVAE(data.image_shape, 2, network=DenseNetwork((8,), (8,)))
    fitting = trainer(tmp_path, 50, callbacks=[GuardFinite(), See()], enable_checkpointing=False, limit_val_batches=0)
    with pytest.raises(NonFiniteError) as error:
        fitting.fit(model, datamodule=data)
    (line,) = (tmp_path / "nonfinite.jsonl").read_text().splitlines()
    found = json.loads(line)
    assert broken in found["ids"]
    assert [i for i in found["ids"] if i != broken] == [i for i in seen[-1] if i]
    assert (found["step"], found["epoch"], found["rank"]) == (fitting.global_step, fitting.current_epoch, 0)
    assert found["names"] == ["train/recon", "train/kl"]
    assert f"{found['ids'][0]}, {found['ids'][1]}, " in str(error.value)


@pytest.mark.parametrize("name", ["VAE", "DIPVAE II", "PartedVAE"])
def test_a_skipped_step_leaves_what_a_run_without_the_update_has(name: str, tmp_path: Path) -> None:
    class LeaveOut(Callback):
        def on_before_optimizer_step(self, trainer: Trainer, pl_module: VAE, optimizer: torch.optim.Optimizer) -> None:  # type: ignore[override]
            if pl_module.step == BAD + 1:
                optimizer.zero_grad()

    def train(data: list[Batch], guard: GuardFinite, folder: Path, *callbacks: Callback) -> VAE:
        torch.manual_seed(0)
        model = MODELS[name]()
        fit(folder, model, data, guard, callbacks=callbacks)
        return model

    guard = GuardFinite("skip")
    with pytest.warns(UserWarning, match=f"step {BAD}, epoch 0: train/recon.*step skipped"):
        skipped = train(batches(bad=(BAD,)), guard, tmp_path / "a")
    left_out = train(batches(), GuardFinite(), tmp_path / "b", LeaveOut())
    assert guard.skipped_steps == 1
    assert skipped.step == left_out.step == 6  # schedules count batches
    if name != "DIPVAE II":  # whose moving covariance lacks the bad batch, and its gradients with it
        assert all(torch.equal(*pair) for pair in zip(weights(skipped), weights(left_out), strict=True))
    assert finite(tmp_path / "a" / "checkpoints" / "last.ckpt")


def test_skipping_is_logged_and_resumed_and_gives_up(tmp_path: Path) -> None:
    guard = GuardFinite("skip", patience=2)
    found = fit(tmp_path, spoilt(steps=(1, 2, 4)), batches(), guard)
    assert found.callback_metrics["skipped_steps"] == 3
    saved = torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)
    again = GuardFinite("skip")
    again.load_state_dict(saved["callbacks"]["GuardFinite"])
    assert again.skipped_steps == 3
    with pytest.raises(NonFiniteError, match=r"step 3.*after 2 skipped batches in a row"):
        fit(tmp_path / "b", spoilt(steps=(1, 2, 3)), batches(), GuardFinite("skip", patience=2))


def test_a_late_look_tells_of_the_first_bad_step(tmp_path: Path) -> None:
    """As on an accelerator, where the weights are spoilt by then; no file is."""
    model = spoilt()
    with pytest.raises(NonFiniteError, match=rf"step {BAD}, epoch 0: train/mine; images: {BAD} "):
        fit(tmp_path, model, batches(), GuardFinite(every_n_steps=50))
    assert not finite_buffers(model) or not all(p.isfinite().all() for p in model.parameters())
    assert finite(tmp_path / "checkpoints" / "last.ckpt")
    assert vaezoo.load(tmp_path / "checkpoints" / "last.ckpt").step == 2


def test_weights_alone_are_never_saved_unseen(tmp_path: Path) -> None:
    lean = ModelCheckpoint(tmp_path / "lean", save_weights_only=True, every_n_train_steps=1, save_top_k=-1)
    with pytest.raises(NonFiniteError):
        fit(tmp_path, spoilt(), batches(), GuardFinite(every_n_steps=50), callbacks=[lean])
    assert len(saved := list((tmp_path / "lean").iterdir())) == BAD
    assert all(map(finite, saved))


def test_weights_that_are_spoilt_otherwise_are_not_saved(tmp_path: Path) -> None:
    class Spoil(Callback):
        def on_train_batch_end(self, trainer: Trainer, pl_module: VAE, *_: object) -> None:  # type: ignore[override]
            if pl_module.step == 4:
                next(pl_module.decoder.parameters()).data[0] = math.inf

    with pytest.raises(NonFiniteError, match=r"decoder.* is not finite at step 4: no checkpoint is written"):
        fit(tmp_path, spoilt(steps=()), batches(), GuardFinite(), callbacks=[Spoil()])
    assert vaezoo.load(tmp_path / "checkpoints" / "last.ckpt").step == 2


def test_accumulated_batches_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(NonFiniteError, match=rf"step 1, epoch 0: train/recon, train/kl; images: {BAD - 1} "):
        fit(tmp_path, spoilt(steps=()), batches(bad=(BAD - 1,)), GuardFinite(), accumulate_grad_batches=2)


@pytest.mark.parametrize("name", ["BetaVAE", "PartedVAE"])
def test_the_loss_scale_finds_its_value_undisturbed(name: str, tmp_path: Path) -> None:
    """Scaled gradients overflow while the scale is too large; a loss that is not finite is an error all the same."""

    def train(data: list[Batch], folder: Path) -> tuple[float, VAE]:
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)  # type: ignore[attr-defined]
        model = MODELS[name]()
        options = {"plugins": [MixedPrecision("16-mixed", "cpu", scaler)]}
        fit(folder, model, data, GuardFinite(), 6, **options)
        return scaler.get_scale(), model

    scale, model = train(batches(), tmp_path / "a")
    assert scale < 2.0**40
    assert all(p.isfinite().all() for p in model.parameters())
    with pytest.raises(NonFiniteError, match=f"step {BAD}.*train/recon"):
        train(batches(bad=(BAD,)), tmp_path / "b")


def test_a_guard_changes_nothing_else(tmp_path: Path) -> None:
    models = [spoilt(steps=()) for _ in range(3)]
    fit(tmp_path / "a", models[0], batches(), GuardFinite())
    fit(tmp_path / "b", models[1], batches(), GuardFinite("skip"))
    torch.manual_seed(1)
    trainer(tmp_path / "c", 6, enable_checkpointing=False).fit(models[2], in_order(batches()))
    for model in models[:2]:
        assert all(torch.equal(*pair) for pair in zip(weights(model), weights(models[2]), strict=True))


def test_nonsense_is_refused() -> None:
    for bad in ({"action": "ignore"}, {"patience": 0}, {"every_n_steps": 0}):
        with pytest.raises(ValueError, match="must be"):
            GuardFinite(**bad)  # type: ignore[arg-type]


def process(rank: int, port: int, folder: str) -> None:
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=2, rank=rank)
    os.environ |= {"LOCAL_RANK": str(rank), "NODE_RANK": "0"}
    said: list[str] = []
    for how, guard in (
        ("image", GuardFinite()),
        ("value", GuardFinite()),
        ("value", GuardFinite(every_n_steps=3)),
        ("image", GuardFinite("skip")),
    ):
        # Batch 5 is the third of the second rank alone, whose loss is the only one that is not finite.
        data = batches(8, (5,) if how == "image" else ())
        model = spoilt(steps=(2,) if how == "value" and rank == 1 else ())
        try:
            fit(Path(folder) / str(len(said)), model, data, guard, 4, devices=2, strategy="ddp")
            said.append(f"skipped {guard.skipped_steps}")
        except NonFiniteError as error:
            said.append(str(error))
    Path(folder, f"{rank}.json").write_text(json.dumps(said))
    dist.destroy_process_group()


def test_two_ranks_stop_together_and_say_the_same(tmp_path: Path) -> None:
    start_ranks(process, str(tmp_path))
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert first == second
    assert "step 2, epoch 0: train/recon, train/kl; images: 5 " in first[0]
    assert all("step 2, epoch 0: train/mine; images: 5 " in line for line in first[1:3])
    assert first[3] == "skipped 1"
    assert finite(tmp_path / "2" / "checkpoints" / "last.ckpt")


TERM = json.dumps({"mine": {"class_path": "tests.callbacks.test_guard.Spoilt"}})
FIT = ["fit", "--model=BetaVAE", f"--model.regularizers={TERM}", "--data=Shapes3DDataModule", "--data.batch_size=4"]
FIT += ["--trainer.max_steps=6", "--trainer.limit_val_batches=0", "--trainer.accelerator=cpu", "--experiment=run"]


LAST = ["--trainer.callbacks=LastCheckpoint", "--trainer.callbacks.every_n_train_steps=2"]


def stopped_well(folder: Path, line: str) -> None:
    assert f"not finite at step {BAD}, epoch 0: train/mine; images: " in line
    assert "(4 ids in runs/run/" in line
    (kept,) = folder.glob("runs/run/*/checkpoints/last.ckpt")
    assert finite(kept)
    assert vaezoo.load(kept).step == 2  # what was saved last


def test_the_command_stops_with_one_line_and_a_good_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, line = attempt([*FIT, *LAST])
    assert code == NonFiniteError.exit_code == 3
    stopped_well(tmp_path, line)


@pytest.mark.slow
def test_the_command_stops_two_ranks_with_one_line(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "vaezoo", *FIT, *LAST, "--trainer.devices=2", "--trainer.strategy=ddp"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 3
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("vaezoo: error:")]
    assert "Traceback" not in done.stderr
    stopped_well(tmp_path, line)


def test_the_command_skips_where_it_is_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="step skipped"):
        assert run([*FIT, "--trainer.callbacks=GuardFinite", "--trainer.callbacks.action=skip"]) == 0
    (rows,) = tmp_path.glob("runs/run/*/metrics.csv")
    assert list(csv.DictReader(rows.read_text().splitlines()))[-1]["skipped_steps"] == "1.0"


@pytest.mark.parametrize("validation", ["warn", "stop"])
def test_a_validation_that_is_not_finite_is_a_warning_or_an_error(validation: Any, tmp_path: Path) -> None:
    best, last = BestCheckpoint(), LastCheckpoint()
    guard = GuardFinite(validation=validation)
    fit = trainer(tmp_path, 4, val_check_interval=2, callbacks=[guard, best, last], num_sanity_val_steps=0)
    best.dirpath = last.dirpath = str(tmp_path)
    seen = batches(4), batches(2, bad=(1,))
    message = "not finite in the validation after step 2: val/recon, val/kl"
    if validation == "stop":
        with pytest.raises(NonFiniteError, match=message):
            fit.fit(spoilt(steps=()), in_order(seen[0]), in_order(seen[1]))
    else:
        with pytest.warns(UserWarning, match=message):
            fit.fit(spoilt(steps=()), in_order(seen[0]), in_order(seen[1]))
    assert fit.global_step == (2 if validation == "stop" else 4)


def test_what_to_do_about_a_validation_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="validation must be 'warn' or 'stop', not 'skip'"):
        GuardFinite(validation="skip")  # type: ignore[arg-type]
