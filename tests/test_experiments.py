"""Every configuration in experiments/ runs through the real command line, on small data in the official layouts."""

import csv
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import vaezoo
from datamodules import (
    Cars3DDataModule,
    Falcor3DDataModule,
    Isaac3DDataModule,
    MPI3DDataModule,
    SmallNORBDataModule,
)
from tests.helpers.datasets import cars3d, celeba, chairs, falcor3d, folder as own, isaac3d, mnist, mpi3d, smallnorb
from tests.helpers.paths import ROOT
from vaezoo.cli.main import run

CONFIGS = sorted((ROOT / "experiments").glob("*.yaml"))
PICTURES = {
    "SaveClassSamples": "samples_c",
    "SaveUnitNats": "nats_",
    "SaveLabelTraversals": "label_traversals",
    "SaveCodeMatrices": "importance",
    "SavePriors": "prior_u",
    "SaveTransfers": "transfers",
    "SavePositionMaps": "position_maps",
}
GRIDS: dict[Any, Any] = {  # and their small layouts
    Isaac3DDataModule: isaac3d,
    Falcor3DDataModule: falcor3d,
    MPI3DDataModule: mpi3d,
    Cars3DDataModule: cars3d,
    SmallNORBDataModule: smallnorb,
}
FEWER = {  # pictures of each kind, but smaller ones; test_starts makes the callbacks as they are written
    "SavePictures": {"images": 2, "steps": 2},
    "SaveClassSamples": {"samples": 2},
    "SaveLabelTraversals": {"steps": 2},
    "SavePriors": {"steps": 2},
    "SaveTransfers": {"images": 2},
    "SavePositionMaps": {"points": 4, "variants": 1},
}
CONTENTS = {config: yaml.safe_load(config.read_text()) for config in CONFIGS}
FIRST = list({content["data"]["class_path"]: config for config, content in reversed(CONTENTS.items())}.values())
"""A configuration for each data: matrices, the dearest picture, depend on the data and not on the model's terms."""
FEW = ["--data.val_size=24", "--data.test_size=4"]  # enough for MIG, and quick to encode
SOME = ["--data.val_size=24", "--data.test_size=40"]  # enough for DCI, whose trees are the dearest part
NARROW = [  # 1200 units a layer take most of the time to draw and to save; test_starts makes them as they are written
    "--model.network.init_args.encoder_widths=[16, 16]",
    "--model.network.init_args.decoder_widths=[16, 16, 16]",
]
SMALL = {
    "ChairsDataModule": ["--data.val_size=4"],
    "CelebADataModule": ["--data.labels=4"],
    "CelebAClassesDataModule": ["--data.labels=4"],
    "Isaac3DDataModule": [*FEW, "--data.labels=4"],
    "ImageFolderDataModule": [*SOME, "--data.data_dir={data_dir}/photos", "--data.labels_file={data_dir}/photos.csv"],
    "Shapes3DDataModule": SOME,
    "DSpritesDataModule": SOME,
}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    celeba.write(folder)
    chairs.write(folder)
    for layout in GRIDS.values():
        layout.write(folder)
    own.table(folder / "photos.csv", own.write(folder / "photos", 80))
    for name in ("MNIST", "FashionMNIST"):
        mnist.write(folder / name / "raw", "train", mnist.pictures(300, 0), torch.arange(300) % 10)
        mnist.write(folder / name / "raw", "t10k", mnist.pictures(15, 1), torch.arange(15) % 10)
    return folder


@pytest.mark.filterwarnings("error:.*could not draw")
@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_an_experiment_trains_and_leaves_a_complete_folder(
    config: Path, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    celeba.take_any_checksum(monkeypatch)
    for data_class, layout in GRIDS.items():
        monkeypatch.setattr(data_class, "factors", layout.Small.factors)
    monkeypatch.setattr(SmallNORBDataModule, "toys", smallnorb.Small.toys)
    given = CONTENTS[config]
    options = ["--data.batch_size=4", "--trainer.max_steps=2", "--trainer.limit_val_batches=1"]
    options += ["--trainer.val_check_interval=2"]
    options += [option.format(data_dir=data_dir) for option in SMALL.get(given["data"]["class_path"], [])]
    if "DenseNetwork" in str(given["model"]):
        options += NARROW
    callbacks = {callback["class_path"]: callback.get("init_args", {}) for callback in given["trainer"]["callbacks"]}
    if config not in FIRST:
        callbacks.pop("SaveCodeMatrices", None)
    fewer = [{"class_path": name, "init_args": {**args, **FEWER.get(name, {})}} for name, args in callbacks.items()]
    Path("fewer.yaml").write_text(yaml.safe_dump({"trainer": {"callbacks": fewer}}))
    files = [f"--config={config}", "--config=fewer.yaml"]
    assert run(["fit", *files, f"--data.data_dir={data_dir}", *options]) == 0
    (folder,) = Path("runs", config.stem).iterdir()
    saved = yaml.safe_load((folder / "config.yaml").read_text())
    assert saved["model"]["class_path"].endswith(given["model"]["class_path"])
    data = saved["data"]["init_args"]
    validates = data["val_size"] > 0 or data.get("official_split", False)
    rows = list(csv.DictReader((folder / "metrics.csv").open()))
    assert any(row["train/loss"] for row in rows)
    assert not validates or any(row["val/loss"] for row in rows)
    kept = {file.name for file in (folder / "checkpoints").iterdir()}
    assert kept == ({"last.ckpt", "best.ckpt"} if validates else {"last.ckpt"})
    latents = vaezoo.load(folder / "checkpoints" / "last.ckpt").walkable()
    drawn = {file.stem for file in (folder / "pictures").iterdir()}
    assert drawn >= {"reconstructions", "samples", *(f"traversals_{name}" for name in latents)}
    for callback, pictures in PICTURES.items():
        assert (callback in callbacks) == any(name.startswith(pictures) for name in drawn), callback


def test_every_experiment_says_what_it_serves() -> None:
    for config in CONFIGS:
        assert config.read_text().startswith("# "), f"{config.name} has no header comment"
