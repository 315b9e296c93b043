"""What commands add to a run on W&B after its training, read back from the files of offline sessions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import wandb

from datamodules import BlobsDataModule
from tests.helpers.harness import attempt
from tests.helpers.offline import Recorded, session
from vaezoo import BetaVAE, DenseNetwork, LaRVAE, save
from vaezoo.cli.main import run
from vaezoo.runs.folder import RunFolder
from vaezoo.study.findings import StudyFindings
from vaezoo.tracking import report, studies, tables
from vaezoo.tracking.wandb_private import local_summary, sessions, waits_for_sync

pytestmark = pytest.mark.xdist_group("wandb")

NOTE = {"id": "abc12345", "entity": None, "project": "shapes", "group": "old", "name": "first"}
DATA = ["--data=BlobsDataModule", "--data.samples=1", "--data.val_size=30", "--data.test_size=200"]
SCORE = ["evaluate", "--metrics", "mig_20", "--images=200", "--resamples=20", *DATA]


@pytest.fixture(autouse=True)
def _own_service() -> Iterator[None]:
    """W&B's process takes paths from the folder that it was started in, as a command's own does."""
    wandb.teardown()  # that of an earlier test
    yield
    wandb.teardown()


def network() -> DenseNetwork:
    return DenseNetwork([8], [8])


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One of a run that is on W&B."""
    monkeypatch.chdir(tmp_path)
    return tracked(Path("runs", "a", "1"))


def tracked(folder: Path) -> Path:
    path = folder / "checkpoints" / "best.ckpt"
    save(BetaVAE(image_shape=(1, 64, 64), latent_dim=2, network=network()), path)
    (folder / "wandb.json").write_text(json.dumps(NOTE))
    return path


def recorded(folder: Path) -> list[Recorded]:
    """The sessions of a run, once W&B's process has written them out."""
    wandb.teardown()
    return [session(path) for path in sessions(folder)]


def test_scores_go_to_the_run_that_trained_the_checkpoint(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SCORE, f"--ckpt_path={checkpoint}"]) == 0
    assert "wandb sync runs/a/1/wandb/offline-run-*" in capsys.readouterr().out
    (found,) = recorded(Path("runs/a/1"))
    facts = (found.run.run_id, found.run.project, found.run.run_group, found.run.display_name, found.run.host)
    assert facts == ("abc12345", "shapes", "old", "first", "")
    written = json.loads(checkpoint.with_name("metrics.json").read_text())["metrics"]["mig_20"]["scores"]["mig_20"]
    names = {"": "value", "/low": "low", "/high": "high"}
    assert {end: found.summary[f"evaluate/best/mig_20{end}"] for end in names} == {
        end: written[name] for end, name in names.items()
    }
    assert found.summary["evaluate/best/images"]["nrows"] == tables.IMAGES
    (kept,) = Path("runs/a/1/wandb").glob("stored-*/metrics.json")
    assert kept.read_bytes() == checkpoint.with_name("metrics.json").read_bytes()


def test_a_later_session_keeps_what_an_earlier_one_summed_up(checkpoint: Path) -> None:
    folder = RunFolder.of(checkpoint).path
    with wandb.init(id="abc12345", project="shapes", dir=folder, mode="offline", reinit="create_new") as training:
        training.define_metric("val/loss", summary="min,last")
        for loss in (3.0, 2.0, 5.0):
            training.log({"val/loss": loss})
    wandb.teardown()
    assert waits_for_sync(folder)
    assert run(["traverse", f"--ckpt_path={checkpoint}", "--latents=z", "--steps=2", *DATA]) == 0
    _, found = recorded(folder)
    assert found.summary["val/loss"] == {"min": 2.0, "last": 5.0}
    drawn = {name for name in found.summary if name.startswith("traverse/best/")}
    assert len(drawn) == len([path for path in (folder / "traversals").rglob("*") if path.is_file()])
    # Drawn again, the same pictures are not stored again.
    assert run(["traverse", f"--ckpt_path={checkpoint}", "--latents=z", "--steps=2", *DATA]) == 0
    again = recorded(folder)[-1]
    assert not again.history
    assert drawn <= again.summary.keys()
    for path in sessions(folder):
        path.with_name(f"{path.name}.synced").touch()
    assert not waits_for_sync(folder)
    assert local_summary(folder)["val/loss"] == {"min": 2.0, "last": 5.0}


@pytest.mark.parametrize("untracked", [True, False])
def test_nothing_is_said_where_nothing_is_wanted(
    untracked: bool, checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder.of(checkpoint)
    if untracked:
        folder.tracking.unlink()
    for args in (SCORE, ["traverse", "--steps=2", *DATA]):
        assert run([*args, f"--ckpt_path={checkpoint}", *([] if untracked else ["--wandb=false"])]) == 0
    assert not (folder.path / "wandb").exists()
    said = capsys.readouterr()
    assert "W&B" not in said.out + said.err


def test_a_failure_of_wandb_is_one_line(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def init(**_: Any) -> None:
        raise wandb.errors.CommError("timed out\nwhile retrying")

    monkeypatch.setattr(wandb, "init", init)
    (checkpoint.parent.parent / "wandb" / "offline-run-1-a").mkdir(parents=True)
    (checkpoint.parent.parent / "wandb" / "offline-run-1-a" / "run-a.wandb").touch()
    assert run([*SCORE, f"--ckpt_path={checkpoint}"]) == 0
    said = capsys.readouterr()
    assert "mig_20" in said.out
    assert [line for line in said.err.splitlines() if "W&B" in line] == [
        "vaezoo: warning: nothing was added to the run on W&B: timed out while retrying"
    ]


def test_a_table_shows_what_a_model_makes_of_images(monkeypatch: pytest.MonkeyPatch) -> None:
    data = BlobsDataModule(samples=1, val_size=30, test_size=30)
    data.setup(None)
    model = LaRVAE(image_shape=(1, 64, 64), label_dim=data.label_size, nuisance_dim=1, network=network()).eval()
    table = tables.image_table(model, data, "test", 0, images=4)
    inferred = [f"inferred {label}" for label in range(data.label_size)]  # one-hot, two names for four
    units = [f"y{unit}" for unit in range(data.label_size)]
    assert table.columns == ["image", "reconstruction", *units, "z0", *data.factor_names, *inferred]
    batch, factors = next(iter(data.evaluation_batches(4, "test", 0, torch.device("cpu"))))
    rows = torch.tensor([row[2:] for row in table.data])
    labels = model.infer_labels(batch.x)
    torch.testing.assert_close(rows, torch.cat([model.codes(batch), factors.float(), labels], 1).float())


def test_a_table_of_scores_has_the_ends_of_intervals() -> None:
    table = tables.score_table({"a": {"mig": (0.5, 0.4, 0.6), "kl": (3.0, None, None)}, "b": {"kl": (4.0, None, None)}})
    assert table.columns == ["run", "mig", "mig low", "mig high", "kl"]
    assert table.data[0] == ["a", 0.5, 0.4, 0.6, 3.0]
    assert table.data[1][0] == "b"
    assert table.data[1][2:] == [None, None, 4.0]


def a_study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> StudyFindings:
    """Two finished runs."""
    monkeypatch.chdir(folder)
    for name in ("vae-0", "vae-1"):
        job = Path("out", "runs", name)
        checkpoint = tracked(job / "1")
        scores = {"mig_20": {"value": 0.5, "low": 0.4, "high": 0.6}, "mig_20_train": {"value": "NaN"}}
        checkpoint.with_name("metrics.json").write_text(json.dumps({"metrics": {"mig_20": {"scores": scores}}}))
        result = {"run": name, "checkpoint": str(checkpoint.relative_to("out"))}
        (job / "result.json").write_text(json.dumps(result))
    Path("out/summary.md").write_text("# vae, budget full\n\n## mig_20\n\n| n |\n|---|\n| 2 |\n")
    return StudyFindings.read(Path("out"))


def test_a_study_has_a_run_with_all_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = a_study(tmp_path, monkeypatch)
    studies.add_study(found)
    (first,) = recorded(Path("out"))
    assert (first.run.job_type, first.run.project, first.run.run_group) == ("study", "shapes", "out")
    assert (first.summary["study/scores"]["nrows"], first.summary["study/scores"]["ncols"]) == (2, 5)
    studies.add_study(found)
    assert [session.run.run_id for session in recorded(Path("out"))] == [first.run.run_id] * 2
    for path in Path("out").glob("runs/*/*/wandb.json"):
        path.unlink()
    studies.add_study(found)
    assert len(sessions(Path("out"))) == 2


def test_a_report_shows_the_runs_of_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = report.study_report(a_study(tmp_path, monkeypatch), "shapes", "me")
    spec = json.loads(made._to_model().spec.model_dump_json(by_alias=True, exclude_none=True))
    (tables_block,) = [block for block in spec["blocks"] if block["type"] == "markdown-block"]
    assert tables_block["content"] == "## mig_20\n\n| n |\n|---|\n| 2 |\n"
    grids = [block["metadata"] for block in spec["blocks"] if block["type"] == "panel-grid"]
    for grid in grids:
        (chosen,) = grid["runSets"][0]["filters"]["filters"]
        assert (chosen["key"], chosen["op"]) == ({"section": "run", "name": "name"}, "IN")
        assert chosen["value"] == ["abc12345", "abc12345"]
    panels = [panel["config"] for grid in grids for panel in grid["panelBankSectionConfig"]["panels"]]
    assert panels[0]["metrics"] == ["evaluate/best/mig_20"]
    assert any(panel.get("metricRegex") == "^val/loss$" for panel in panels)
    assert any("pictures/samples" in panel.get("mediaKeys", ()) for panel in panels)


def test_one_command_saves_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interface = pytest.importorskip("wandb_workspaces.reports.v2.interface")
    saved = []

    def keep(self: Any) -> Any:
        saved.append((self.entity, self.project, self.title))
        return type("Saved", (), {"url": "https://wandb.ai/me/shapes/reports/1"})

    monkeypatch.setattr(interface.Report, "save", keep)
    monkeypatch.setattr(wandb, "login", lambda **_: True)
    a_study(tmp_path, monkeypatch)
    assert run(["dashboard", "--report=out", "--entity=me"]) == 0
    assert saved == [("me", "shapes", "out")]
    assert "vaezoo study" in attempt(["dashboard", "--report=runs"])[1]
    for path in Path("out").glob("runs/*/*/wandb.json"):
        path.unlink()
    assert "WandbLogger" in attempt(["dashboard", "--report=out"])[1]


def test_a_study_hands_the_option_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["study", "larvae_rates", "--dry_run"]) == 0
    commands = [line for line in capsys.readouterr().out.splitlines() if " evaluate " in line]
    assert commands
    assert not any("--wandb" in line for line in commands)
    assert run(["study", "larvae_rates", "--dry_run", "--wandb=false"]) == 0
    commands = [line for line in capsys.readouterr().out.splitlines() if " evaluate " in line]
    assert all("--wandb=false" in line for line in commands)
