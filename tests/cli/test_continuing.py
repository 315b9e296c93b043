"""A run goes on as it began: with its best checkpoint, its model and its data, wherever its folder lies."""

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from lightning.fabric.utilities.cloud_io import get_filesystem

from tests.helpers.commands import NETWORK
from tests.helpers.continuing import FIT, change, fit, same_state, the_run
from vaezoo.cli.main import run
from vaezoo.runs.checkpoint_io import read_checkpoint
from vaezoo.runs.folder import RunFolder

TEST = ["test", *FIT[1:]]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def newest() -> RunFolder:
    return RunFolder.all_in(Path("runs/exp"))[-1]


def best_state(path: Path) -> dict[str, Any]:
    (state,) = (v for k, v in torch.load(path, weights_only=True)["callbacks"].items() if k.startswith("BestCh"))
    return dict(state)


def unbeaten(path: Path) -> torch.Tensor:
    """Let the best score of a checkpoint be one that nothing beats."""
    content, score = read_checkpoint(path), torch.tensor(-1e9)
    (key,) = (key for key in content["callbacks"] if key.startswith("BestCheckpoint"))
    content["callbacks"][key]["best_model_score"] = score
    change(path, callbacks=content["callbacks"])
    return score


def test_the_best_checkpoint_moves_with_its_run() -> None:
    assert fit(2) == 0
    score = unbeaten(the_run().last)
    content = the_run().best.read_bytes()
    Path("elsewhere").mkdir()
    Path("runs").rename("elsewhere/runs")
    assert fit(4, "--runs_dir=elsewhere/runs") == 0
    _, second = RunFolder.all_in(Path("elsewhere/runs/exp"))
    assert second.best.read_bytes() == content
    assert best_state(second.last)["best_model_score"] == score


@pytest.mark.parametrize("name", ["notes.txt", "keys/best.ckpt"])
def test_no_file_outside_of_a_checkpoints_folder_is_taken_over(name: str) -> None:
    assert fit(2) == 0
    first, secret = the_run(), Path(name).absolute()
    unbeaten(first.last)
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("a word to no one")
    content = read_checkpoint(first.last)
    (key,) = (key for key in content["callbacks"] if key.startswith("BestCheckpoint"))
    content["callbacks"][key]["best_model_path"] = str(secret)
    change(first.last, callbacks=content["callbacks"])
    first.best.unlink()
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"no best.ckpt lies beside the checkpoint"):
            assert fit(4, last=str(first.last)) == 0
        taken = [file for file in newest().path.rglob("*") if file.is_file() and b"to no one" in file.read_bytes()]
        assert not taken
        if not first.best.is_symlink():
            first.best.symlink_to(secret)  # and again: a link is a way out as well


@pytest.mark.parametrize("command", ["test", "validate", "predict"])
def test_another_models_checkpoint_is_not_tested(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(2) == 0
    path = the_run().last
    assert run([command, *FIT[1:], "--model=TCVAE", f"--ckpt_path={path}"]) == 1
    assert "the checkpoint holds a BetaVAE, the configuration names a TCVAE" in capsys.readouterr().err
    assert run([command, *FIT[1:], "--model.beta=7", f"--ckpt_path={path}"]) == 1
    assert "the checkpoint was written with model.beta=4.0, the configuration says 7.0" in capsys.readouterr().err


def test_addresses_are_checked_as_paths_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(2) == 0
    path = the_run().last
    address = path.absolute().as_uri()
    assert run([*TEST, f"--ckpt_path={address}"]) == 0
    assert fit(4, "--model.beta=7", last=address) == 1
    assert "the checkpoint was written with model.beta=4.0" in capsys.readouterr().err
    assert fit(2, last=address) == 0
    assert "is complete after step 2" in capsys.readouterr().out
    bucket = get_filesystem("memory://bucket")
    with bucket.open("memory://bucket/last.ckpt", "wb") as file:
        file.write(path.read_bytes())
    assert run([*TEST, "--model.beta=7", "--ckpt_path=memory://bucket/last.ckpt"]) == 1
    assert "the checkpoint was written with model.beta=4.0" in capsys.readouterr().err
    assert fit(4, last="memory://bucket/last.ckpt") == 0
    with bucket.open("memory://bucket/cut.ckpt", "wb") as file:
        file.write(path.read_bytes()[:-50])
    for name, why in (("cut", "is damaged"), ("none", "no checkpoint at memory://bucket/none.ckpt")):
        assert fit(6, last=f"memory://bucket/{name}.ckpt") == 1
        assert why in capsys.readouterr().err


def test_early_stopping_at_the_end_of_an_epoch_resumes() -> None:
    stop = [
        *("--trainer.val_check_interval=1.0", "--trainer.limit_train_batches=2", "--trainer.check_val_every_n_epoch=1"),
        *("--trainer.callbacks+=EarlyStopping", "--trainer.callbacks.monitor=val/loss"),
        *("--trainer.callbacks.patience=2", "--trainer.callbacks.min_delta=1e9"),
    ]
    assert fit(4, *stop) == 0
    assert fit(20, *stop) == 0
    assert read_checkpoint(newest().last)["global_step"] == 6


def test_a_run_that_stopped_early_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    stop = [
        *("--trainer.callbacks+=lightning.pytorch.callbacks.EarlyStopping", "--trainer.callbacks.monitor=val/loss"),
        *("--trainer.callbacks.patience=1", "--trainer.callbacks.min_delta=1e9"),
    ]
    assert fit(20, *stop) == 0
    first = the_run()
    assert read_checkpoint(first.last)["global_step"] == 4
    assert read_checkpoint(first.previous)["global_step"] == 2
    capsys.readouterr()
    assert fit(20, *stop) == 0
    assert f"the run of {first.last} is complete: it stopped early, after step 4" in capsys.readouterr().out
    assert the_run() == first
    assert fit(6, "--allow_changes=true") == 0
    assert f"continuing from {first.last}, step 4" in capsys.readouterr().out
    assert read_checkpoint(newest().last)["global_step"] == 6
    assert fit(6, "--allow_changes=true") == 0
    assert "is complete after step 6" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "change"),
    [
        ("--data.test_size=12", "data.test_size=10 (now 12)"),
        ("--trainer.accumulate_grad_batches=2", "trainer.accumulate_grad_batches=1 (now 2)"),
        ("--trainer.precision=bf16-mixed", "trainer.precision=32-true (now bf16-mixed)"),
    ],
)
def test_other_data_or_batches_need_to_be_allowed(option: str, change: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(2) == 0
    assert fit(4, option) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("vaezoo: error:")]
    assert f"the checkpoint was written with {change}: a resumed run keeps its settings" in line
    assert "--allow_changes true" in line
    assert fit(4, option, "--allow_changes=true") == 0
    assert yaml.safe_load(newest().config.read_text())["allow_changes"] is False


BLOBS = [
    *("fit", "--model=BetaVAE", "--model.latent_dim=3", NETWORK, "--data=BlobsDataModule", "--experiment=exp"),
    *(
        "--data.val_size=8",
        "--data.test_size=8",
        "--data.samples=1",
        *FIT[FIT.index("--trainer.val_check_interval=2") :],
    ),
]


def test_what_differs_in_the_data_is_named_all_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*BLOBS, "--data.batch_size=4", "--trainer.max_steps=2"]) == 0
    start = f"--ckpt_path={the_run().last}"
    other = ["--data.batch_size=5", "--data.split_seed=1", "--data.labels=8"]
    assert run([*BLOBS, *other, "--trainer.max_steps=4", start]) == 1
    said = capsys.readouterr().err
    for part in ("data.batch_size=4 (now 5)", "data.labels=1.0 (now 8)", "data.split_seed=0 (now 1)"):
        assert part in said
    assert run([*BLOBS, "--data.batch_size=4", "--data.num_workers=1", "--trainer.max_steps=4", start]) == 0
    assert run([*BLOBS, "--data.batch_size=4", "--seed_everything=5", "--trainer.max_steps=6", start]) == 1
    assert "seed_everything=0 (now 5)" in capsys.readouterr().err


def test_callbacks_that_would_spoil_a_run_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(2, "--trainer.callbacks+=EMAWeightAveraging") == 1
    assert "EMAWeightAveraging with use_buffers: true averages counters too" in capsys.readouterr().err
    average = ["--trainer.callbacks+=StochasticWeightAveraging", "--trainer.callbacks.swa_lrs=0.1"]
    average.append("--trainer.callbacks.swa_epoch_start=1")
    with pytest.warns(UserWarning, match="a run with Lightning's StochasticWeightAveraging cannot be resumed"):
        assert fit(2, *average) == 0
    assert fit(4, *average) == 1
    assert "Lightning's StochasticWeightAveraging does not continue where it stopped" in capsys.readouterr().err


def test_a_limit_of_batches_and_averaged_weights_continue_exactly() -> None:
    more = ["--trainer.limit_train_batches=3", "--trainer.callbacks+=EMAWeightAveraging"]
    more += ["--trainer.callbacks.use_buffers=false", "--trainer.callbacks.decay=0.5"]
    for steps in (2, 4, 8):
        assert fit(steps, *more) == 0
    assert run([*FIT, *more, "--trainer.max_steps=8", "--experiment=unbroken"]) == 0
    (unbroken,) = RunFolder.all_in(Path("runs/unbroken"))
    same_state(unbroken.last, newest().last)
    assert read_checkpoint(newest().last)["state_dict"]["step"] == 8
