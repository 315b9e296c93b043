"""`vaezoo predict`: what lies beside the codes, and that `evaluate --codes` reads it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import vaezoo
from tests.helpers.commands import MODELS, NETWORK, SMALL
from tests.helpers.toy import ToyDataModule
from vaezoo.cli.main import run
from vaezoo.metrics.catalogue import METRICS

JOINT = ["--model=JointVAE", "--model.continuous=2", "--model.discrete=[4, 3]"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_codes_come_with_ids_factors_and_names_and_are_scored_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    given = [*JOINT, SMALL, NETWORK, "--data.test_size=60", "--trainer.enable_progress_bar=false"]
    assert run(["fit", *given, "--trainer.max_steps=2", "--experiment=fit"]) == 0
    (folder,) = Path("runs/fit").iterdir()
    assert run(["predict", *given, "--experiment=predict", f"--ckpt_path={folder}"]) == 0
    (file,) = Path("runs/predict").glob("*/codes.npz")
    assert f"codes: {file} (scores of them: vaezoo evaluate --codes {file})" in capsys.readouterr().out
    with np.load(file, allow_pickle=False) as content:
        found: dict[str, Any] = dict(content)
    data = ToyDataModule(test_size=60)
    data.setup()
    ids = data.test_ids
    assert found["ids"].tolist() == ids.tolist()
    assert found["unit_names"].tolist() == ["z_0", "z_1", "c_0_0", "c_0_1", "c_0_2", "c_0_3", "c_1_0", "c_1_1", "c_1_2"]
    assert (found["factor_names"].tolist(), found["discrete"].tolist()) == (["shape", "size", "angle"], [4, 3])
    np.testing.assert_array_equal(found["factors"], data.factors_of(ids).numpy())
    model = vaezoo.load(folder / "checkpoints" / "last.ckpt")
    codes = model.represent(data.pictures.images(ids).float() / 255)
    torch.testing.assert_close(torch.from_numpy(found["codes"]), codes)
    # The same scores as of the checkpoint itself: 60 test images are all of its pool.
    names = [name for name in METRICS if name in ("mig_20", "sap_dip", "cluster_accuracy", "active_units")]
    quick = ["--metrics", *names, "--resamples=0"]
    assert run(["evaluate", "--codes", str(file), *quick]) == 0
    assert run(["evaluate", "--ckpt_path", str(folder), *quick]) == 0
    given_codes = json.loads(file.with_name("metrics_codes.json").read_text())["metrics"]
    of_model = json.loads((folder / "checkpoints" / "metrics.json").read_text())["metrics"]
    for name in names:
        values = {score: entry["value"] for score, entry in of_model[name]["scores"].items()}
        assert {score: entry["value"] for score, entry in given_codes[name]["scores"].items()} == pytest.approx(values)


def test_without_test_images_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    given = [*MODELS["beta"], SMALL, NETWORK, "--data.test_size=0", "--trainer.enable_progress_bar=false"]
    assert run(["predict", *given]) == 1
    assert "SmallDataModule holds no test images to predict" in capsys.readouterr().err
