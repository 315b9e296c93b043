"""No key or other secret of the environment reaches a file that a run leaves."""

import os
from pathlib import Path

import pytest

from tests.helpers.harness import attempt
from tests.helpers.paths import ROOT
from tests.helpers.processes import command

KEY, OTHER = "0123456789abcdef" * 2 + "fedcba98", "correct-horse-battery-staple"
SMALL = ["--model=BetaVAE", "--model.latent_dim=2", "--data=BlobsDataModule", "--data.samples=1", "--data.batch_size=2"]
SMALL += ["--data.val_size=30", "--data.test_size=30", "--trainer.max_steps=1", "--trainer.limit_val_batches=1"]


def files_with(secret: str, folder: Path) -> list[Path]:
    """Files that hold a secret, also backwards, in UTF-16 or in hexadecimal digits; names count as well."""
    forms = [secret.encode(), secret.encode("utf-16-le"), secret[::-1].encode(), secret.encode().hex().encode()]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if secret in str(path) or any(form in path.read_bytes() for form in forms)]


def test_a_tracked_run_its_scores_and_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    secrets = {"WANDB_API_KEY": KEY, "DATABASE_PASSWORD": OTHER, "HOME": str(tmp_path / "home")}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    environment = os.environ | {"WANDB_MODE": "offline", "PYTHONPATH": str(ROOT), "WANDB__REQUIRE_LEGACY_SERVICE": ""}
    args = ["fit", *SMALL, "--trainer.logger=WandbLogger", "--trainer.logger.log_model=all", "--experiment=secret"]
    code, said = command(args, tmp_path, environment)
    assert code == 0, said[-2000:]
    assert list(tmp_path.glob("runs/secret/*/wandb/offline-run-*/*.wandb")), "W&B has logged the run"
    monkeypatch.chdir(tmp_path)
    (checkpoint,) = tmp_path.glob("runs/secret/*/checkpoints/last.ckpt")
    assert attempt(["evaluate", f"--ckpt_path={checkpoint}", "--metrics=mig_20", "--resamples=0"]) == (0, "")
    assert attempt(["report", "runs"]) == (0, "")
    assert (tmp_path / "report.html").is_file()
    for secret in (KEY, OTHER):
        assert files_with(secret, tmp_path) == []
        assert secret not in said
    assert files_with(str(tmp_path / "home"), tmp_path / "runs") == []


def test_the_search_finds_what_it_looks_for(tmp_path: Path) -> None:
    for name, content in {"a": KEY.encode(), "b": b"\x00" + KEY.encode("utf-16-le"), KEY: b""}.items():
        (tmp_path / name).write_bytes(content)
    assert len(files_with(KEY, tmp_path)) == 3


@pytest.mark.parametrize("setting", ['settings={{"api_key": "{}"}}', 'settings={{"identity_token_file": "{}"}}'])
def test_a_key_in_the_configuration_is_refused(setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be saved with the run, in config.yaml and on W&B."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    logger = ["--trainer.logger=WandbLogger", f"--trainer.logger.{setting.format(KEY)}"]
    code, line = attempt(["fit", *SMALL, *logger])
    assert code != 0
    assert "WANDB_API_KEY" in line
    assert KEY not in line
    assert files_with(KEY, tmp_path) == []
