"""Checkpoints on W&B by their addresses; `test_wire.py` stores and fetches them over the wire."""

from pathlib import Path

import pytest
import wandb

from tests.helpers.harness import attempt
from vaezoo.runs.folder import RunFolder
from vaezoo.tracking import artifacts

pytestmark = pytest.mark.xdist_group("wandb")


@pytest.mark.parametrize("text", ["wandb:model", "wandb:me/vaezoo/model", "wandb:../x/model:best", "wandb:a/b/c/d:e"])
@pytest.mark.parametrize("command", ["evaluate", "traverse", "fit --model=BetaVAE --data=BlobsDataModule"])
def test_what_is_no_address_is_one_line(command: str, text: str) -> None:
    code, line = attempt([*command.split(), f"--ckpt_path={text}"])
    assert code == 1
    assert text in line
    assert "wandb:entity/project/name:alias" in line


def test_without_login_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(wandb, "login", lambda **_: False)
    code, line = attempt(["evaluate", "--ckpt_path", "wandb:me/vaezoo/model-abc:best"])
    assert code == 1
    assert "wandb:me/vaezoo/model-abc:best could not be fetched (not logged in)" in line
    assert "wandb login" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("names", [[], ["best.ckpt", "last.ckpt"], ["inside/best.ckpt"]])
def test_an_artifact_holds_one_checkpoint(names: list[str], tmp_path: Path) -> None:
    artifact = wandb.Artifact("model-abc", "model")
    (tmp_path / "file").write_text("x")
    for name in names:
        artifact.add_file(str(tmp_path / "file"), name=name, policy="immutable")
    with pytest.raises(ValueError, match="checkpoints: name one that vaezoo stored"):
        artifacts._downloaded(artifact, tmp_path)


def test_an_artifact_keeps_files_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entries name no home folder; W&B would copy each file there and say so."""
    monkeypatch.chdir(tmp_path)
    file = Path("runs", "metrics.json")
    file.parent.mkdir()
    file.write_text("old")
    stored = artifacts.stored_files("evaluate-abc", "evaluate", [file], RunFolder(file.parent))
    file.unlink()
    file.write_text("new")
    (entry,) = stored.manifest.entries.values()
    assert entry.local_path == "runs/wandb/stored-0/metrics.json"
    assert Path(entry.local_path).read_text() == "old"
