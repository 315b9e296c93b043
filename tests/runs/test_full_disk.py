"""A disk that fills up: one line that says so, and no file that a later command would take for whole."""

import multiprocessing
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml

import vaezoo
from tests.helpers.harness import attempt
from vaezoo.cli.failures import explain
from vaezoo.models import BetaVAE
from vaezoo.nn.networks import DenseNetwork
from vaezoo.runs.files import atomic_write

FORK = multiprocessing.get_context("fork")
DATA = {"samples": 1, "val_size": 30, "test_size": 30, "batch_size": 2}
BLOBS = ["--data=BlobsDataModule", *(f"--data.{name}={value}" for name, value in DATA.items())]
WIDE = ["--model=BetaVAE", "--model.latent_dim=2", "--trainer.max_steps=1", "--trainer.limit_val_batches=0"]


def limited(work: Callable[[], tuple[int, str]], size: int) -> tuple[int, str]:
    """Do something in a process whose files may not grow beyond a size, as on a full disk; needs no root."""
    ours, theirs = FORK.Pipe()

    def run() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        theirs.send(work())

    process = FORK.Process(target=run)
    process.start()
    process.join(120)
    assert process.exitcode == 0
    code, line = ours.recv()
    return int(code), str(line)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with a checkpoint."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    model = BetaVAE((1, 64, 64), latent_dim=2, network=DenseNetwork([4], [4]))
    saved = {
        "state_dict": model.state_dict(),
        "hyper_parameters": {**model.hparams},
        "pytorch-lightning_version": "2.6.0",
    }
    torch.save(saved | {"model_class": model.spec["class_path"]}, folder / "checkpoints" / "last.ckpt")
    settings = {"class_path": "BlobsDataModule", "init_args": DATA}
    model_settings = {"class_path": "BetaVAE", "init_args": {"latent_dim": 2}}
    (folder / "config.yaml").write_text(yaml.safe_dump({"model": model_settings, "data": settings}))
    return folder


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith(".") or path.suffix == ".part"]


COMMANDS = {
    "evaluate": (
        ["--ckpt_path=run/checkpoints/last.ckpt", "--metrics=mig_20", "--resamples=0"],
        "run/checkpoints/metrics.json",
    ),
    "report": (["run", "-o=report.html"], "report.html"),
}


@pytest.mark.parametrize("old", [None, "what was there"])
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_written_at_the_end(command: str, old: str | None, folder: Path) -> None:
    args, name = COMMANDS[command]
    target = Path(name)
    if old is not None and command == "report":
        target.write_text(old)
    code, line = limited(lambda: attempt([command, *args]), 200)
    assert code != 0
    assert f"cannot write {target}" in line
    assert "free the space" in line
    assert target.read_text() == old if target.exists() else command == "evaluate" or old is None
    assert leftovers(folder.parent) == []


@pytest.mark.parametrize("size", [2000, 30_000])
def test_a_fit(size: int, folder: Path) -> None:
    """Too small for the configuration, or for the checkpoint alone."""
    code, line = limited(lambda: attempt(["fit", *WIDE, *BLOBS]), size)
    assert code != 0
    assert "cannot write" in line or "could not write" in line, line
    assert not list(Path("runs").rglob("*.ckpt"))
    for config in Path("runs").rglob("config.yaml"):
        assert yaml.safe_load(config.read_text())["data"]["init_args"]["batch_size"] == 2  # the whole of it
    assert leftovers(Path("runs")) == []


def test_codes(folder: Path) -> None:
    options = ["--trainer.logger=false", "--trainer.enable_progress_bar=false"]
    code, line = limited(lambda: attempt(["predict", *WIDE[:2], *BLOBS, *options]), 400)
    assert code != 0
    assert "cannot write" in line
    assert not list(Path().rglob("codes.npz"))
    assert leftovers(Path("runs")) == []


def test_a_fit_on_a_small_disk(small_disk: Path, folder: Path) -> None:
    code, line = attempt(["fit", *WIDE, *BLOBS, f"--runs_dir={small_disk}"])
    assert code != 0
    assert "write" in line
    for checkpoint in small_disk.rglob("*.ckpt"):
        with pytest.raises((ValueError, RuntimeError)):
            vaezoo.load(checkpoint)


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with atomic_write(path) as draft:
        draft.write_text("first")

    def interrupted() -> None:
        with atomic_write(path) as draft:
            draft.write_text("sec")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [file.name for file in path.parent.iterdir()] == ["file"]
    assert path.read_text() == "first"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device", "x"), "cannot write x (No space left on device): free the space"),
        (
            RuntimeError("[enforce fail at inline_container.cc:664] . unexpected pos 64 vs 0"),
            "a checkpoint that was due",
        ),
        (OSError(13, "Permission denied", "y"), "y: Permission denied; check the path"),
        (RuntimeError("PytorchStreamReader failed reading zip archive"), "damaged or cut off"),
        (TypeError("boom"), "TypeError: boom; --debug shows where"),
        (ValueError("a\n  b"), "a b"),
    ],
)
def test_errors_say_what_to_do(error: Exception, words: str) -> None:
    assert words in explain(error)
    assert "\n" not in explain(error)
