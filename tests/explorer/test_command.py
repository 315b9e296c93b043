"""`vaezoo explore` and `vaezoo.explore`, up to where they would open a page."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import vaezoo
from datamodules import ImageDataModule
from tests.helpers.paths import ROOT
from tests.helpers.zoo import MODELS, a_batch
from vaezoo import explorer
from vaezoo.cli.main import run
from vaezoo.explorer import opening
from vaezoo.explorer.command import _parser, explorer_of
from vaezoo.runs.data import RunData

RUNS = ROOT / "tests" / "data" / "runs_0_1"


def found(*args: str, data: tuple[str, ...] = ()) -> Any:
    return explorer_of(_parser().parse_args([*args, "--pool", "5"]), RunData(ImageDataModule, data), bool(data))


def the_run(name: str) -> str:
    return str(next((RUNS / name).iterdir()))


def test_a_run_is_opened_with_its_own_data() -> None:
    opened = found(the_run("welavae"))
    assert opened.names == ["welavae · WeLaVAE · step 4"]
    assert opened.weak_labels == {"angle": 2, "distance": 2}
    assert opened.images.factor_names == ("row", "column", "radius")
    assert len(opened.images.starts.batch.x) == 5


def test_without_its_data_a_checkpoint_keeps_the_prior(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.ckpt"
    shutil.copy(Path(the_run("welavae")) / "checkpoints" / "last.ckpt", file)
    assert found(str(file)).images is None
    assert "without test images" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"reads images of \(1, 64, 64\), but Shapes3DDataModule gives"):
        found(str(file), data=("--data=Shapes3DDataModule", "--data.source=render"))
    twice = found(str(file), str(file))
    assert twice.names == [f"{file} (0)", f"{file} (1)"]


def test_runs_of_one_experiment_go_by_their_time(tmp_path: Path) -> None:
    for time in ("20250101-120000", "20250101-130000"):
        shutil.copytree(the_run("welavae"), tmp_path / "wela" / time)
    opened = found(*(str(path) for path in sorted((tmp_path / "wela").iterdir())))
    assert opened.names == ["wela/20250101-120000 · last", "wela/20250101-130000 · last"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nowhere.ckpt"], "no checkpoint at nowhere.ckpt"),
        ([the_run("welavae"), the_run("jointvae")], "the same codes do not fit both"),
        ([the_run("welavae"), "--port", "70000"], "--port must be 1 to 65535, not 70000"),
        ([the_run("welavae"), "--pool", "0"], "--pool must be 1 or more, not 0"),
    ],
)
def test_bad_input_is_one_line(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", *args]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("page", "components"):
        monkeypatch.delitem(sys.modules, f"vaezoo.explorer.{name}", raising=False)
        monkeypatch.delattr(explorer, name, raising=False)
    monkeypatch.setitem(sys.modules, "gradio", None)  # as if it were not installed
    assert run(["explore", the_run("welavae")]) == 1
    assert capsys.readouterr().err == ("vaezoo: error: vaezoo explore needs Gradio: pip install 'vaezoo[explore]'\n")


def test_a_model_is_explored_from_python(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(opening, "launch", lambda explorer, **options: asked.update(explorer=explorer, **options))
    model = MODELS["BetaVAE"]()
    vaezoo.explore(model, a_batch(labels=0).x)
    assert not model.training
    assert asked["explorer"].names == ["BetaVAE"]
    assert torch.equal(asked["explorer"].image(2).image, a_batch(labels=0).x[2:3])
    assert (asked["port"], asked["share"], asked["open"]) == (None, False, False)
    vaezoo.explore(model)
    assert asked["explorer"].images is None
