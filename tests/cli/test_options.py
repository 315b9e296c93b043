"""Options of all commands: spelt in full, and a run's folder for one of its checkpoints."""

import contextlib
import os
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer

import vaezoo
from tests.helpers.commands import MODELS, NETWORK, SMALL
from vaezoo.__main__ import main
from vaezoo.cli.commands import OWN_COMMANDS
from vaezoo.cli.main import run, run_first

SHORT_FORMS = {
    "fit": (["--exper=x"], "--experiment, not --exper"),
    "validate": (["--trainer.max_s", "3"], "--trainer.max_steps, not --trainer.max_s"),
    "test": (["--ckpt=x"], "--ckpt_path, not --ckpt"),
    "predict": (["--runs", "x"], "--runs_dir, not --runs"),
    "evaluate": (["--ckpt", "x", "--imag=5"], "--ckpt_path, not --ckpt"),
    "traverse": (["--image_i", "3"], "--image_indices, not --image_i"),
    "figure": (["runs", "units", "--out=x"], "--output, not --out"),
    "export": (["run", "--form=onnx"], "--format, not --form"),
    "explore": (["run", "--por=7860"], "--port, not --por"),
    "share": (["run", "--nam=x"], "--name, not --nam"),
    "pretrained": (["--impor=x"], "--import, not --impor"),
    "report": (["--o", "x.html", "runs"], "--output, not --o"),
    "dashboard": (["--proj=x"], "--project, not --proj"),
    "study": (["larvae_rates", "--dry"], "--dry_run, not --dry"),
    "reproduce": (["x", "--budg=short"], "--budget, not --budg"),
    "experiments": (["--impor=x"], "--import, not --impor"),
}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", ["fit", "validate", "test", "predict", *OWN_COMMANDS])
def test_a_short_form_is_an_error_with_the_full_name(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A new command needs an entry above: its parser is a `CommandParser`."""
    args, said = SHORT_FORMS[command]
    assert run([command, *args]) == 2
    assert f"vaezoo: error: options are spelt in full: {said}\n" == capsys.readouterr().err
    assert not Path("runs").exists()


def test_all_full_names_are_given_and_other_words_get_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "--s", "3"]) == 2
    assert "--split or --seed, not --s" in capsys.readouterr().err
    assert run(["evaluate", "--metircs", "kl"]) == 2
    assert "unknown option '--metircs'; did you mean 'metrics'?" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"vaezoo {vaezoo.__version__}\n"


def test_a_folder_stands_for_one_of_its_checkpoints(capsys: pytest.CaptureFixture[str]) -> None:
    """Training goes on from the last checkpoint; all else takes the best one, or the last where there is none."""
    given = [*MODELS["beta"], SMALL, NETWORK, "--trainer.enable_progress_bar=false"]
    assert run(["fit", *given, "--trainer.max_steps=3", "--trainer.limit_val_batches=0"]) == 0
    (folder,) = Path("runs/betavae").iterdir()
    last, best = folder / "checkpoints/last.ckpt", folder / "checkpoints/best.ckpt"
    assert run(["test", *given, f"--ckpt_path={folder}"]) == 0
    assert f"{folder}: using its last checkpoint, as it has no best one, {last}" in capsys.readouterr().out
    best.write_bytes(last.read_bytes())
    assert run(["test", *given, f"--ckpt_path={folder}"]) == 0
    assert f"{folder}: using its best checkpoint, {best}" in capsys.readouterr().out
    assert run(["fit", *given, "--trainer.max_steps=5", "--experiment=more", f"--ckpt_path={folder}"]) == 0
    said = capsys.readouterr().out
    assert f"{folder}: using its last checkpoint, to resume, {last}\n" in said
    assert f"continuing from {last}, step 3" in said
    assert run(["fit", *given, "--ckpt_path=runs"]) == 1
    assert "runs holds no checkpoint: give the folder of a run" in capsys.readouterr().err


class SaysDefaults(Callback):
    """Names what the Trainer profiles with, and how many batches it validates first."""

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        profiler = trainer.profiler  # type: ignore[attr-defined]  # Lightning sets it from elsewhere
        print(f"profiler: {type(profiler).__name__}, {trainer.num_sanity_val_steps} batches first")


BARE = [f"--trainer.{name}=false" for name in ("logger", "enable_checkpointing", "enable_progress_bar")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "NoProfiler, 1"),
        (["--trainer.profiler=simple", "--trainer.num_sanity_val_steps=2"], "SimpleProfiler, 2"),
        (["--trainer.barebones=true", "--trainer.max_steps=50", *BARE], "PassThroughProfiler, 0"),
    ],
)
def test_a_run_starts_soon_unless_asked(given: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    says = '--trainer.callbacks=[{"class_path": "tests.cli.test_options.SaysDefaults"}]'
    assert run(["fit", *MODELS["beta"], SMALL, NETWORK, "--trainer.max_steps=2", says, *given]) == 0
    assert f"profiler: {said} batches first\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "same"),
    [
        (["export", "--ckpt_path", "RUN", "--format", "onnx"], ["export", "RUN", "--format", "onnx"]),
        (["figure", "ranked", "--output=a", "--ckpt_path=RUN"], ["figure", "RUN", "ranked", "--output=a"]),
        (["explore", "--port", "1", "--ckpt_path", "A", "B", "--open"], ["explore", "A", "B", "--port", "1", "--open"]),
        (["evaluate", "--ckpt_path", "A"], ["evaluate", "--ckpt_path", "A"]),
        (["share", "RUN"], ["share", "RUN"]),
        ([], []),
    ],
)
def test_a_run_may_be_named_by_ckpt_path_in_every_command(args: list[str], same: list[str]) -> None:
    assert run_first(args) == same


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["figure", "RUN"], "vaezoo figure needs KIND, for example: vaezoo figure RUN reconstructions"),
        (["share"], "vaezoo share needs RUN and --name, for example: vaezoo share RUN --name partedvae_mine"),
        (["traverse"], "vaezoo traverse needs --ckpt_path, for example: vaezoo traverse --ckpt_path RUN"),
    ],
)
def test_what_is_missing_is_named_with_an_example(
    args: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(args) == 2
    assert capsys.readouterr().err.startswith(f"vaezoo: error: {message}")


@pytest.mark.parametrize("args", [["experiments"], ["study", "--help"], ["fit", "--help"], ["--help"], ["--version"]])
def test_whoever_reads_the_output_may_have_seen_enough(args: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        try:
            assert main(args) == 141
        finally:
            torch.set_flush_denormal(False)  # which `main` sets for a process of its own
        with contextlib.suppress(BrokenPipeError):
            pipe.close()
