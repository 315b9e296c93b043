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
import torch
from torch import Tensor

import vaezoo
from tests.helpers.paths import DATA
from vaezoo.cli.main import run
from vaezoo.nn.latents import Gaussian
from vaezoo.regularizers import KL

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


@pytest.fixture
def _noise_of_0_1(old_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LaRVAE's labels and nuisance were one group, whose noise was drawn at once; now each group draws its own."""
    if old_run.parent.name not in ("larvae", "ss_factorvae"):
        return
    labels, nuisance = 5, 2
    rest: list[Tensor] = []

    def rsample(q: Gaussian) -> Tensor:
        if q.mean.shape[1] == labels:
            noise, left = torch.randn(len(q.mean), labels + nuisance).tensor_split([labels], dim=1)
            rest.append(left)
        else:
            noise = rest.pop()
        return q.mean + torch.exp(0.5 * q.logvar) * noise

    monkeypatch.setattr(Gaussian, "rsample", rsample)


@every_model
@pytest.mark.usefixtures("_noise_of_0_1")
def test_it_goes_on_as_it_would_have(old_run: Path) -> None:
    """From the second step on, this holds only if Adam's moments are the old ones."""
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
        known = {key: value for key, value in row.items() if not key.endswith(("/nats_y", "/nats_z"))}  # new
        assert known == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("old_run", ["larvae", "ss_factorvae"], indirect=True)
def test_labels_and_nuisance_get_their_shares_of_the_head(old_run: Path) -> None:
    path = old_run / "checkpoints" / "last.ckpt"
    old = torch.load(path, weights_only=True)
    for model in (vaezoo.load(path), vaezoo.LaRVAE.load_from_checkpoint(path)):
        assert isinstance(model.regularizers["kl"], KL)
        assert model.regularizers["kl"].latents == ("y", "z")
        for kind in ("weight", "bias"):
            both = old["state_dict"][f"heads.z.parameters_of.{kind}"]  # means of y and z, log-variances of y and z
            for name, rows in {"y": [0, 1, 2, 3, 4, 7, 8, 9, 10, 11], "z": [5, 6, 12, 13]}.items():
                assert torch.equal(model.get_parameter(f"heads.{name}.parameters_of.{kind}"), both[rows])


@pytest.mark.parametrize("old_run", ["ss_factorvae"], indirect=True)
def test_the_moments_are_split_with_the_head(old_run: Path) -> None:
    path = old_run / "checkpoints" / "last.ckpt"
    old, new = (torch.load(path, weights_only=True) for _ in range(2))
    model = vaezoo.load(path)
    model.on_load_checkpoint(new)
    optimizer = model.configure_optimizers()
    optimizer.load_state_dict(new["optimizer_states"][0])
    before = old["optimizer_states"][0]["state"]
    names = [name for name, _ in model.named_parameters()]
    for parameter in model.parameters():
        assert optimizer.state[parameter]["exp_avg_sq"].shape == parameter.shape
    for key in ("exp_avg", "exp_avg_sq"):
        found = [optimizer.state[parameter][key] for parameter in model.parameters()]
        first = names.index("heads.y.parameters_of.weight")
        assert torch.equal(found[first], before[first][key][[0, 1, 2, 3, 4, 7, 8, 9, 10, 11]])
        assert torch.equal(found[first + 3], before[first + 1][key][[5, 6, 12, 13]])
        assert all(torch.equal(found[i], before[i][key]) for i in range(first))
        assert all(torch.equal(found[i + 2], before[i][key]) for i in range(first + 2, len(before)))
