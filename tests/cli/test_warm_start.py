"""`--init_from`: a new run with the weights of a checkpoint, as far as they fit."""

from pathlib import Path

import pytest
import torch

from tests.helpers.commands import MODELS
from tests.helpers.continuing import FIT, same_state
from vaezoo.cli.main import run
from vaezoo.runs.checkpoint_io import read_checkpoint
from vaezoo.runs.folder import RunFolder


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def first() -> RunFolder:
    return fit("first", 3)


def start(experiment: str, steps: int, *more: str) -> int:
    return run([*FIT, f"--experiment={experiment}", f"--trainer.max_steps={steps}", *more])


def fit(experiment: str, steps: int, *more: str) -> RunFolder:
    assert start(experiment, steps, *more) == 0
    return RunFolder.all_in(Path("runs") / experiment)[-1]


def test_weights_alone_go_into_a_model_whose_shapes_fit(first: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    init = f"--init_from={first.last}"
    capsys.readouterr()
    warm = fit("warm", 1, init, "--model.beta=9", "--model.lr=0")
    said = capsys.readouterr().out
    assert f"init_from {first.last}: loaded 8 of 8 tensors, 100% of the weights\n" in said
    assert "not loaded" not in said
    assert warm.read_config()["init_from"] == str(first.last)
    before, after = (read_checkpoint(path)["state_dict"] for path in (first.last, warm.last))
    assert (before.pop("step"), after.pop("step")) == (3, 1), "the run is a new one"
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_what_does_not_fit_is_named(first: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    init = f"--init_from={first.last}"
    fit("wider", 1, init, "--model.latent_dim=4")
    said = capsys.readouterr().out
    assert "loaded 5 of 8 tensors" in said
    assert "not loaded: of another shape: heads.z.parameters_of, decoder.0\n" in said
    fit("joint", 1, init, *MODELS["joint"])
    assert "not in the checkpoint: heads.c.logits" in capsys.readouterr().out
    weights = read_checkpoint(first.last)
    torch.save({"state_dict": {"of": torch.ones(2), "step": weights["state_dict"]["step"]}}, "strange.ckpt")
    assert start("strange", 1, "--init_from=strange.ckpt") == 1
    assert "no weight in strange.ckpt has the name and shape of one of BetaVAE's" in capsys.readouterr().err
    assert not Path("runs/strange").exists()


def test_a_frozen_encoder_stays_so_when_the_run_continues(first: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    frozen = [f"--init_from={first.last}", "--freeze_encoder=true", "--model.beta=9"]
    unbroken = fit("unbroken", 4, *frozen)
    broken = fit("broken", 2, *frozen)
    again = [f"--config={broken.config}", f"--ckpt_path={broken.last}", "--trainer.max_steps=4", "--experiment=again"]
    first.last.rename("moved.ckpt")  # the checkpoint wins: nothing starts warm again
    capsys.readouterr()
    assert run(["fit", *again]) == 0
    assert "init_from" not in capsys.readouterr().out
    (resumed,) = RunFolder.all_in(Path("runs/again"))
    same_state(unbroken.last, resumed.last)
    weights, start_weights = (read_checkpoint(path)["state_dict"] for path in (resumed.last, Path("moved.ckpt")))
    same = {name: torch.equal(weights[name], start_weights[name]) for name in weights}
    assert [name for name, alike in same.items() if alike] == [name for name in same if name.startswith("encoder.")]
    assert start("broken", 6, "--model.beta=9", f"--ckpt_path={resumed.last}") == 1
    assert "freeze_encoder=True (now False)" in capsys.readouterr().err


def test_last_goes_on_with_a_run_that_began_with_the_same_weights(
    first: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    warm = [f"--init_from={first.last}", "--ckpt_path=last"]
    fit("warm", 2, *warm)
    assert "loaded 8 of 8" in capsys.readouterr().out
    fit("warm", 4, *warm)
    said = capsys.readouterr().out
    assert "step 2\n" in said
    assert "loaded" not in said
    assert start("warm", 6, "--ckpt_path=last") == 1
    assert f"began with the weights of {first.last}, the configuration with random weights" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--init_from=a.ckpt", "--ckpt_path=b.ckpt"], "--ckpt_path resumes a run: give one"),
        (["--weights_only=true", "--ckpt_path=b.ckpt"], "--weights_only does not load weights: use --init_from CKPT"),
        (["--freeze_encoder=true"], "--freeze_encoder would freeze random weights: give --init_from CKPT as well"),
        (["--init_from=none.ckpt"], "no checkpoint at none.ckpt"),
    ],
)
def test_what_contradicts_itself_is_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start("odd", 2, *options) in (1, 2)
    assert message in capsys.readouterr().err
    assert not Path("runs").exists()


def test_the_help_says_what_loads_weights(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["fit", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "To load weights: --init_from." in said
    assert "--freeze_encoder" in said


def test_an_encoder_that_was_not_loaded_is_not_frozen(first: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    other = (
        '--model.network={"class_path": "DenseNetwork", "init_args": {"encoder_widths": [9], "decoder_widths": [8]}}'
    )
    assert start("odd", 2, f"--init_from={first.last}", "--freeze_encoder=true", other) == 1
    assert "so the encoder would stay untrained" in capsys.readouterr().err
