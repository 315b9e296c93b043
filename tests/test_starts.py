"""Every configuration in experiments/ starts as it is written, on data as long as the published ones."""

import subprocess
import sys
from pathlib import Path

import pytest

import datamodules.loader
from tests.helpers.datasets import folder
from tests.helpers.datasets.full_length import FullLength
from tests.helpers.paths import ROOT
from vaezoo.cli.main import run

pytestmark = pytest.mark.xdist_group("starts")  # one worker writes the layouts

CONFIGS = sorted((ROOT / "experiments").glob("*.yaml"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> FullLength:
    return FullLength(tmp_path_factory.mktemp("full"))


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_an_experiment_starts_as_written(
    config: Path, ranks: int, data: FullLength, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data, model, Trainer, two batches of validation and the Trainer's checks of intervals against epochs."""
    if ranks > 1 and "val_check_interval" not in config.read_text():
        pytest.skip("has no interval that an epoch of half as many batches could be too short for")
    monkeypatch.chdir(tmp_path)
    data.use(monkeypatch)
    monkeypatch.setattr(datamodules.loader, "_world", lambda: (0, ranks))
    options = [f"--data.data_dir={data.folder}"]
    if "ImageFolderDataModule" in config.read_text():  # no dataset is published for it
        folder.table(tmp_path / "photos.csv", folder.write(tmp_path / "photos", 80))
        options = []
    options += ["--trainer.max_steps=0", "--trainer.enable_model_summary=false"]
    assert run(["fit", f"--config={config}", *options]) == 0


@pytest.mark.timeout(600)
def test_a_short_epoch_starts_on_two_processes(tmp_path: Path) -> None:
    """896 batches an epoch on each rank, and a validation every 2,000."""
    config = ROOT / "experiments" / "dipvae1_dsprites.yaml"
    ranks = ["--trainer.accelerator=cpu", "--trainer.devices=2", "--trainer.strategy=ddp"]
    command = [sys.executable, "-m", "vaezoo", "fit", f"--config={config}", "--trainer.max_steps=1", *ranks]
    ended = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert len(list(tmp_path.glob("runs/dipvae1_dsprites/*/checkpoints/last.ckpt"))) == 1
