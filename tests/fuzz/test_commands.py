"""Command lines with wrong flags and with files that are not what they should be."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, strategies as st

from tests.helpers.harness import attempt, tries
from vaezoo import BetaVAE
from vaezoo.nn.networks import DenseNetwork

COMMANDS = ["fit", "validate", "test", "predict", "evaluate", "traverse", "report", "dashboard"]
FLAGS = [
    "--config",
    "--ckpt_path",
    "--model",
    "--data",
    "--model.beta",
    "--data.batch_size",
    "--trainer.max_steps",
]
FLAGS += [
    "--images",
    "--image_indices",
    "--units",
    "--max_units",
    "--span",
    "--steps",
    "--latents",
    "--metrics",
    "--resamples",
    "--seed",
    "--split",
    "--output",
]
FLAGS += [
    "-o",
    "--device",
    "--prior",
    "--experiment",
    "--runs_dir",
    "--entity",
    "--nonsense",
    "--data.class_path",
    "--",
]
FILES = [
    "missing",
    "folder",
    "empty",
    "binary",
    "text.yaml",
    "model.ckpt",
    "cut.ckpt",
    "tensor.ckpt",
    "number.json",
    "run",
]
WORDS = [
    "",
    "-1",
    "0",
    "1e400",
    "nan",
    "x",
    "é\u2028",
    "[",
    "{",
    "null",
    "a b",
    "BetaVAE",
    "BlobsDataModule",
    "\x00",
    "os.system",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    (folder / "binary").write_bytes(bytes(range(256)) * 4)
    (folder / "text.yaml").write_text("a: [1, 2\n\tb: 3")
    (folder / "number.json").write_text("3")
    model = BetaVAE((1, 64, 64), latent_dim=2, network=DenseNetwork([4], [4]))
    saved = {"state_dict": model.state_dict(), "hyper_parameters": dict(model.hparams), "model_class": "BetaVAE"}
    torch.save(saved | {"pytorch-lightning_version": "2.6.0"}, folder / "model.ckpt")
    whole = (folder / "model.ckpt").read_bytes()
    (folder / "cut.ckpt").write_bytes(whole[: len(whole) // 2])
    torch.save(torch.ones(3), folder / "tensor.ckpt")
    run = folder / "run" / "checkpoints"
    run.mkdir(parents=True)
    (run / "last.ckpt").write_bytes(whole[:-40])
    (run / "metrics.json").write_text("[")
    (run.parent / "config.yaml").write_text("data: {class_path: 3}")
    (run.parent / "metrics.csv").write_text('step,"\n0,1')
    return folder


@pytest.fixture(autouse=True)
def _in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("WANDB_MODE", "disabled")


values = st.sampled_from(FILES + WORDS)
options = st.tuples(st.sampled_from(FLAGS), values).map(lambda pair: [f"{pair[0]}={pair[1]}"]) | st.tuples(
    st.sampled_from(FLAGS), values
).map(list)


@tries(40)
@given(command=st.sampled_from(COMMANDS), parts=st.lists(options, max_size=3))
def test_wrong_command_lines(command: str, parts: list[list[str]]) -> None:
    """Nothing here names both a model and data, so that no command has anything to do."""
    before = {path for path in Path().rglob("*") if path.suffix in (".json", ".csv", ".npy", ".ckpt")}
    if command != "dashboard" or parts:  # which asks W&B
        attempt([command, *(part for option in parts for part in option)])
    assert {path for path in Path().rglob("*") if path.suffix in (".json", ".csv", ".npy", ".ckpt")} == before


DATA = ["--data=BlobsDataModule", "--data.samples=1", "--data.val_size=30", "--data.test_size=30"]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("command", ["fit", "evaluate", "traverse", "report"])
def test_a_file_that_is_no_checkpoint(command: str, file: str) -> None:
    if file in ("model.ckpt", "run"):
        pytest.skip("a checkpoint and a run")
    own = {"fit": ["--model=BetaVAE", "--trainer.fast_dev_run=true", *DATA, f"--ckpt_path={file}"], "report": [file]}
    code, line = attempt([command, *own.get(command, [f"--ckpt_path={file}", *DATA])])
    assert code != 0
    assert file in line or "checkpoint" in line, line


@pytest.mark.parametrize(
    "wrong",
    [
        ["--images=0"],
        ["--images=-3"],
        ["--resamples=-1"],
        ["--seed=-1"],
        ["--device=quantum"],
        ["--latents=q"],
        ["--metrics=mig_21"],
        ["--split=future"],
        ["--data.val_size=-1"],
        ["--data=Shapes3DDataModule", "--data.source=render"],
    ],
    ids=" ".join,
)
def test_nonsense_for_evaluate(wrong: list[str]) -> None:
    code, _ = attempt(["evaluate", "--ckpt_path=model.ckpt", *DATA, *wrong])
    assert code != 0
    assert not Path("metrics.json").exists()


@pytest.mark.parametrize(
    "wrong", ["--steps=0", "--steps=-2", "--units=9", "--image_indices=99999", "--image_indices=-1", "--latents=q"]
)
def test_nonsense_for_traverse(wrong: str) -> None:
    code, _ = attempt(["traverse", "--ckpt_path=model.ckpt", "--output=drawn", *DATA, wrong])
    assert code != 0
    assert not list(Path().glob("drawn/*.png"))


@pytest.mark.parametrize(
    "wrong", ["--width=0", "--width=9m", "--dpi=-1", "--format=jpg", "--output=a.jpg", "--row_names=a"]
)
def test_nonsense_for_figure(wrong: str) -> None:
    code, _ = attempt(["figure", "model.ckpt", "reconstructions", "--output=drawn", *DATA, wrong])
    assert code != 0
    assert not list(Path().glob("drawn/*"))


def test_a_broken_run_is_reported_with_notes(capsys: pytest.CaptureFixture[str]) -> None:
    assert attempt(["report", "run", "--output=broken.html"]) == (0, "")
    assert "checkpoint" in Path("broken.html").read_text()
    Path("broken.html").unlink()
