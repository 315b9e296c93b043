"""Every configuration in experiments/ starts as it is written, on data as long as the published ones."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import datamodules.loader
from tests.helpers.datasets import folder
from tests.helpers.datasets.full_length import FullLength
from tests.helpers.paths import ROOT
from vaezoo.cli.main import run

pytestmark = pytest.mark.xdist_group("starts")  # one worker writes the layouts

CONFIGS = sorted((ROOT / "experiments").glob("*.yaml"))


def interval(config: Path) -> tuple[str, Any]:
    """All that decides whether an interval fits an epoch: the data and the interval, whatever the model."""
    content = yaml.safe_load(config.read_text())
    return str(content["data"]), content["trainer"].get("val_check_interval")


WITH_INTERVALS = {interval(config): config for config in CONFIGS if "val_check_interval" in config.read_text()}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> FullLength:
    return FullLength(tmp_path_factory.mktemp("full"))


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_an_experiment_starts_as_written(
    config: Path, ranks: int, data: FullLength, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data, model, Trainer, two batches of validation and the Trainer's checks of intervals against epochs."""
    if ranks > 1 and config not in WITH_INTERVALS.values():
        pytest.skip("has no interval that an epoch of half as many batches could be too short for, or another's")
    monkeypatch.chdir(tmp_path)
    data.use(monkeypatch)
    monkeypatch.setattr(datamodules.loader, "_world", lambda: (0, ranks))
    options = [f"--data.data_dir={data.folder}"]
    if "ImageFolderDataModule" in config.read_text():  # no dataset is published for it
        folder.table(tmp_path / "photos.csv", folder.write(tmp_path / "photos", 80))
        options = []
    options += ["--trainer.max_steps=0", "--trainer.enable_model_summary=false"]
    assert run(["fit", f"--config={config}", *options]) == 0
