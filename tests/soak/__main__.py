"""`make soak`: long runs with everything switched on, which must hold no more at their end than after their warm-up."""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import wandb
import yaml

from tests.bench.__main__ import table
from tests.soak.watch import Sample, read, row, violations
from vaezoo.cli.main import run

NETWORK = {"class_path": "ConvNetwork", "init_args": {"channels": [8, 8, 8, 8], "hidden": [32]}}
SCORES = {"class_path": "EvaluateDisentanglement", "init_args": {"images": 100}}
FEWER = {"SaveCodeMatrices": {"pool": 100}, "SavePositionMaps": {"points": 8}}
MODELS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "LaRVAE": (
        {"nuisance_dim": 2},
        {"class_path": "Shapes3DDataModule", "init_args": {"labels": 100}},
        ["SavePictures", "SaveLabelTraversals", "SaveCodeMatrices", "SaveUnitNats"],
    ),
    "PartedVAE": (
        {"dim_z": 3, "dim_u": 1, "discrete": [3]},
        {
            "class_path": "DSpritesDataModule",
            "init_args": {"labels": 99, "labelled_factors": ["shape"], "label_form": "index"},
        },
        ["SavePictures", "SaveClassSamples", "SavePriors", "SaveTransfers", "SavePositionMaps"],
    ),
}
"""Arguments of a model, its data and its pictures."""


def configuration(name: str, folder: Path, steps: int, minutes: float, every: int) -> dict[str, Any]:
    """A run with scores, pictures, checkpoints, CSV and W&B, all of them every few steps."""
    arguments, data, pictures = MODELS[name]
    small = {"source": "render", "batch_size": 16, "val_size": 64, "test_size": 256}
    callbacks = [
        *({"class_path": picture, "init_args": FEWER.get(picture, {})} for picture in pictures),
        SCORES,
        {"class_path": "GuardFinite"},
        {"class_path": "LastCheckpoint", "init_args": {"every_n_train_steps": every}},
        {
            "class_path": "ModelCheckpoint",
            "init_args": {"monitor": "val/loss", "filename": "best", "enable_version_counter": False},
        },
        {"class_path": "tests.soak.watch.Watch", "init_args": {"path": str(folder / f"{name}.jsonl")}},
    ]
    return {
        "experiment": name.lower(),
        "runs_dir": str(folder / "runs"),
        "model": {"class_path": name, "init_args": {**arguments, "network": NETWORK}},
        "data": {**data, "init_args": {**data["init_args"], **small}},
        "trainer": {
            "accelerator": "cpu",
            "max_steps": steps,
            "max_time": {"seconds": round(60 * minutes)},
            "val_check_interval": every,
            "check_val_every_n_epoch": None,
            "log_every_n_steps": 5,
            "callbacks": callbacks,
            "logger": [{"class_path": "WandbLogger", "init_args": {"offline": True}}],
        },
    }


def soak(name: str, folder: Path, steps: int, minutes: float, every: int) -> list[Sample]:
    """Train a model, and what its process held meanwhile."""
    config = folder / f"{name}.yaml"
    config.write_text(yaml.safe_dump(configuration(name, folder, steps, minutes, every)))
    if run(["fit", f"--config={config}"]) != 0:
        raise RuntimeError(f"{name} did not train")
    wandb.finish()  # the next model is another run
    return read(folder / f"{name}.jsonl")


def main() -> int:
    """Soak every model for its share of the time; 1 where anything grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000, help="steps of each model at most")
    parser.add_argument("--minutes", type=float, default=60, help="minutes of all models together at most")
    parser.add_argument("--every", type=int, default=25, help="steps from one validation to the next")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="which of the models")
    args = parser.parse_args()
    os.environ.setdefault("WANDB_SILENT", "true")
    grown = []
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        for name in args.models:
            samples = soak(name, Path(folder), args.steps, args.minutes / len(args.models), args.every)
            print(f"\n{table([row(name, samples)])}", flush=True)
            grown += [f"{name}: {line}" for line in violations(samples)]
    print("\n".join(grown) or "nothing grows but the logs")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
