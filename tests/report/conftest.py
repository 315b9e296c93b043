import json
from pathlib import Path

import pytest
import torch
from PIL import Image

from tests.helpers.report import EVIL, write_scores
from vaezoo.cli.main import run

SHORT = ["--trainer.max_steps=6", "--trainer.limit_val_batches=1", "--trainer.num_sanity_val_steps=0"]
LOGS = ["--trainer.log_every_n_steps=2", "--trainer.val_check_interval=3", "--trainer.enable_progress_bar=false"]
DATA = ["--data=Shapes3DDataModule", "--data.source=render", "--data.batch_size=4"]
MODELS = {
    "beta": ["--model=BetaVAE", "--model.latent_dim=3", "--trainer.callbacks+=SavePictures"],
    "joint": ["--model=JointVAE", "--model.continuous=2", "--model.discrete=[3,4]"],
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of each model, one of them evaluated, and a run of a stranger."""
    folder = tmp_path_factory.mktemp("report") / "runs"
    for name, model in MODELS.items():
        assert run(["fit", *model, *DATA, *SHORT, *LOGS, f"--experiment={name}", f"--runs_dir={folder}"]) == 0
        (path,) = folder.glob(f"{name}/*/checkpoints/last.ckpt")
        checkpoint = torch.load(path, weights_only=True)
        for key, value in checkpoint["state_dict"].items():
            if key.startswith("decoder") and value.ndim > 1:
                value *= 3  # six steps teach a decoder nothing: let it at least show its latents
        torch.save(checkpoint, path)
    score = {"value": 0.5, "low": 0.4, "high": 0.6}
    metrics = {"mig": {"definition": "a gap", "scores": {"mig_20": score, "mig_20_0": {"value": 0.1}}}}
    write_scores(path.parent / "metrics.json", metrics)
    stranger = folder / "stranger" / EVIL.replace("/", "\\")
    (stranger / "checkpoints").mkdir(parents=True)
    (stranger / "config.yaml").write_text(json.dumps({"model": {"class_path": EVIL, EVIL: [EVIL]}}))
    (stranger / "metrics.csv").write_text(f'step,val/loss,"{EVIL.replace(chr(34), chr(34) * 2)}"\n0,1e9,2\n')
    write_scores(stranger / "checkpoints" / "metrics.json", {EVIL: {"definition": EVIL, "scores": {EVIL: score}}})
    (stranger / "pictures").mkdir()
    Image.new("RGB", (2, 2)).save(stranger / "pictures" / f"{EVIL.replace('/', '|')}.png")
    return folder


@pytest.fixture
def beta(runs: Path) -> Path:
    (folder,) = runs.glob("beta/*")
    return folder


@pytest.fixture
def joint(runs: Path) -> Path:
    (folder,) = runs.glob("joint/*")
    return folder
