"""Runs that version 0.1.0 wrote load, evaluate and go on with this one.

`data/runs_0_1` holds one run of each model: 4 steps of 4 images of a tiny network on drawn dSprites (WeLa-VAE: Blobs),
and in `expected.json` what 0.1.0 itself gave for two further steps and for three scores of 256 test images.
"""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import vaezoo
from tests.helpers.paths import DATA
from vaezoo.cli.main import run

OLD = DATA / "runs_0_1"
EXPECTED: dict[str, Any] = json.loads((OLD / "expected.json").read_text())


@pytest.fixture
def old_run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (folder,) = (OLD / request.param).iterdir()
    return Path(shutil.copytree(folder, tmp_path / "runs" / request.param / folder.name))


every_model = pytest.mark.parametrize("old_run", EXPECTED, indirect=True)


@every_model
def test_it_loads_and_gives_the_same_scores(old_run: Path) -> None:
    name, checkpoint = old_run.parent.name, old_run / "checkpoints" / "last.ckpt"
    assert vaezoo.load(checkpoint).step == 4
    expected = EXPECTED[name]["scores"]
    assert run(["evaluate", f"--ckpt_path={checkpoint}", "--images=256", "--resamples=0", "--metrics", *expected]) == 0
    found = json.loads(checkpoint.with_name("metrics.json").read_text())["metrics"]
    scores = {metric: {k: score["value"] for k, score in result["scores"].items()} for metric, result in found.items()}
    for metric, values in expected.items():
        assert scores[metric] == pytest.approx(values, rel=1e-4, abs=1e-6)


@every_model
def test_it_goes_on_as_it_would_have(old_run: Path) -> None:
    name, checkpoint = old_run.parent.name, old_run / "checkpoints" / "last.ckpt"
    more = ["--experiment=more", "--trainer.max_steps=6"]
    assert run(["fit", f"--config={old_run}/config.yaml", f"--ckpt_path={checkpoint}", *more]) == 0
    (log,) = Path("runs/more").glob("*/metrics.csv")
    with log.open(newline="") as lines:
        rows = [
            {key: float(value) for key, value in row.items() if value and key != "epoch"}
            for row in csv.DictReader(lines)
        ]
    assert len(rows) == len(EXPECTED[name]["resumed"])
    for row, expected in zip(rows, EXPECTED[name]["resumed"], strict=True):
        assert row == pytest.approx(expected, rel=1e-4, abs=1e-5)
