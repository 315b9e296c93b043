"""Runs on Weights & Biases, read back from the files of offline runs; the dashboard's specification."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
import wandb
from jsonargparse import Namespace
from lightning.pytorch.loggers import WandbLogger

from tests.helpers.offline import Recorded, read
from tests.helpers.paths import ROOT
from tests.helpers.processes import command
from tests.helpers.zoo import MODELS, a_batch
from vaezoo import metrics
from vaezoo.cli.main import run
from vaezoo.models import VAE
from vaezoo.runs.commits import commit
from vaezoo.tracking import dashboard, wandb as tracking
from vaezoo.tracking.notes import without_home
from vaezoo.tracking.wandb_private import records, sessions

pytestmark = pytest.mark.xdist_group("wandb")  # one worker makes what all of them read

FIT = ["--model=BetaVAE", "--model.network=DenseNetwork", "--data=BlobsDataModule", "--data.batch_size=32"]
FIT += ["--model.network.encoder_widths=[16]", "--model.network.decoder_widths=[16]"]
SHORT = ["--trainer.limit_val_batches=1", "--trainer.num_sanity_val_steps=0", "--trainer.log_every_n_steps=1"]
SEEN = ["--trainer.val_check_interval=1", "--trainer.callbacks+=SavePictures"]
SCORED = ["--trainer.callbacks+=EvaluateDisentanglement", "--trainer.callbacks.images=200"]


def vaezoo(folder: Path, *args: str, **env: str) -> str:
    """Run in a process of its own, at whose end W&B finishes its files: nobody is logged in, nobody can be asked."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("WANDB_", "VAEZOO_"))}
    env = clean | {"HOME": str(folder), "NETRC": str(folder / "netrc"), "PYTHONPATH": str(ROOT)} | env
    code, said = command(list(args), folder, env)
    assert code == 0, said[-2000:]
    return said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without login, which a second one continues."""
    folder = tmp_path_factory.mktemp("tracked")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    options = [*FIT, *SHORT, *SEEN, *SCORED, "--trainer.logger=WandbLogger", "--seed_everything=3"]
    said = vaezoo(folder, "fit", *options, "--trainer.max_steps=2", "--experiment=first", "--name=a name")
    (warning,) = [line for line in said.splitlines() if "WARNING the run is logged offline" in line]
    assert "wandb login" in warning
    first = the_run(folder, "first")
    again = [f"--config={first}/config.yaml", f"--ckpt_path={first}/checkpoints/last.ckpt", "--experiment=second"]
    vaezoo(folder, "fit", *again, "--trainer.max_steps=3", WANDB_MODE="offline")
    return folder


def the_run(folder: Path, experiment: str) -> Path:
    (run,) = (folder / "runs" / experiment).iterdir()
    return run


@pytest.fixture(scope="module")
def recorded(folder: Path) -> Recorded:
    return read(the_run(folder, "first"))


def test_a_run_is_grouped_tagged_and_configured(folder: Path, recorded: Recorded) -> None:
    assert (recorded.run.project, recorded.run.run_group, recorded.run.job_type) == ("vaezoo", "first", "fit")
    assert recorded.run.display_name == "a name"
    assert recorded.tags == {"BetaVAE", "Higgins et al., 2017", "Blobs", "source: render", "seed: 3"}
    expected = {
        "experiment": "first",
        "seed": 3,
        "family": "BetaVAE",
        "paper": "Higgins et al., 2017",
        "dataset": "BlobsDataModule",
        "data_source": "render",
        "git_commit": commit(folder),
        "vaezoo_commit": commit(ROOT),
        "beta": 4.0,
    }
    assert {key: recorded.config[key] for key in expected} == expected
    assert recorded.config["cli"]["data"]["init_args"]["batch_size"] == 32


def test_metrics_pictures_and_summaries_are_there(folder: Path, recorded: Recorded) -> None:
    rows = recorded.history
    assert [row["trainer/global_step"] for row in rows if "train/loss" in row] == [0, 1]
    losses = [row["val/loss"] for row in rows if "val/loss" in row]
    scores = [row["val/mig_20"] for row in rows if "val/mig_20" in row]
    assert len(losses) == len(scores) == 2
    assert recorded.summary["val/loss"] == {"min": min(losses), "last": losses[-1]}
    assert recorded.summary["val/mig_20"] == {"max": max(scores), "last": scores[-1]}
    (files,) = (the_run(folder, "first") / "wandb").glob("offline-run-*/files")
    for name in ("reconstructions", "samples", "traversals_z"):
        pictures = [file for row in rows for file in row.get(f"pictures/{name}", {}).get("filenames", ())]
        assert pictures
        assert all((files / picture).is_file() for picture in pictures)


def test_resuming_goes_into_the_same_run_and_repeating_does_not(folder: Path, recorded: Recorded) -> None:
    second = read(the_run(folder, "second"))
    for key in ("run_id", "display_name", "run_group", "job_type"):
        assert getattr(second.run, key) == getattr(recorded.run, key)
    (step,) = [row["trainer/global_step"] for row in second.history if "train/loss" in row]
    assert step > 1
    assert recorded.run.run_id not in (the_run(folder, "first") / "config.yaml").read_text()


def test_a_run_does_not_name_the_machine(folder: Path) -> None:
    (path,) = sessions(the_run(folder, "first"))
    found = [record.environment for record in records(path) if record.HasField("environment")]
    assert {"python", ""} >= {environment.executable for environment in found}
    assert {"vaezoo", ""} >= {environment.program for environment in found}
    assert not any(environment.host for environment in found)
    assert not any(record.run.host for record in records(path) if record.HasField("run"))
    stored = list((the_run(folder, "first") / "wandb").glob("stored-*"))
    assert not stored  # checkpoints are not uploaded unless that is asked for


def test_predicting_without_login_is_logged_offline(folder: Path) -> None:
    first = the_run(folder, "first")
    again = [f"--config={first}/config.yaml", f"--ckpt_path={first}/checkpoints/last.ckpt", "--experiment=codes"]
    said = vaezoo(folder, "predict", *again, "--trainer.limit_predict_batches=1")
    assert len([line for line in said.splitlines() if "WARNING the run is logged offline" in line]) == 1
    assert (read(the_run(folder, "codes")).run.job_type, (the_run(folder, "codes") / "codes.npz").is_file()) == (
        "predict",
        True,
    )


@pytest.mark.parametrize(("given", "policy"), [({}, False), ({"log_model": True}, True), ({"log_model": "all"}, "all")])
def test_checkpoints_are_stored_by_vaezoo(given: dict[str, Any], policy: Any, tmp_path: Path) -> None:
    logger = Namespace(init_args=Namespace(save_dir=".", **given))
    assert tracking.fill_in_logger(logger, tmp_path, "new", "fit", None) == policy
    assert logger.init_args.log_model is False  # Lightning's logger would upload them again


def test_home_folders_are_not_named() -> None:
    home = str(Path.home())
    given = {"a": [f"{home}/data", f"--runs_dir={home}"], "b": f"{home}work", "c": 3}
    assert without_home(given) == {"a": ["~/data", "--runs_dir=~"], "b": f"{home}work", "c": 3}


@pytest.mark.parametrize(
    ("command", "given", "expected"),
    [
        ("fit", {}, ("abc", "old", "fit")),
        ("test", {}, ("abc", "old", "fit")),  # the scores of a test belong to the run that was trained
        ("validate", {}, (None, "new", "validate")),
        ("fit", {"id": "mine", "group": "ours"}, ("mine", "ours", "fit")),
    ],
)
def test_which_run_is_continued(
    command: str, given: dict[str, str], expected: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "can_log_in", lambda: True)
    (tmp_path / "wandb.json").write_text(json.dumps({"id": "abc", "group": "old", "name": "first", "project": "p"}))
    logger = Namespace(init_args=Namespace(save_dir=".", **given))
    tracking.fill_in_logger(logger, tmp_path / "run", "new", command, str(tmp_path / "checkpoints" / "last.ckpt"))
    args = logger.init_args
    assert (args.id, args.group, args.job_type) == expected
    assert args.get("mode") is None


def test_a_server_that_fails_means_offline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def init(mode: str | None = None, **_: Any) -> str:
        if mode != "offline":
            raise wandb.errors.CommError("timed out\nwhile retrying")
        return "a run"

    monkeypatch.setattr(wandb, "init", init)
    monkeypatch.setattr(wandb, "run", None)  # of whatever ran in this process before, perhaps silently
    monkeypatch.setattr(wandb.errors.term, "_silent", False)
    monkeypatch.setattr(wandb.errors.term, "_show_warnings", True)
    assert tracking._started(WandbLogger()) == "a run"
    assert "logged offline" in capsys.readouterr().err


def test_commits_are_those_of_the_right_repository(tmp_path: Path) -> None:
    assert commit(tmp_path) is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "records").mkdir()
    (tmp_path / "file").write_text("1")
    (tmp_path / "records" / "record").write_text("1")
    subprocess.run([*git, "add", "file", "records"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "first"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert commit(tmp_path) == commit(tmp_path, tracked="file") == head
    (tmp_path / "records" / "record").write_text("2")
    for folder in (tmp_path, tmp_path / "records"):
        assert (commit(folder), commit(folder, besides="records")) == (f"{head}-dirty", head)
    (tmp_path / "file").write_text("2")
    assert commit(tmp_path) == commit(tmp_path / "records", besides="records") == f"{head}-dirty"
    assert commit(tmp_path, tracked="installed.py") is None


@pytest.mark.parametrize("model", MODELS)
def test_models_name_their_paper(model: str) -> None:
    cls = type(MODELS[model]())
    assert cls.paper in (cls.__doc__ or "")
    assert cls is VAE or cls.paper != VAE.paper


def test_scores_are_called_so() -> None:
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(0, 2, (64, 2), generator=generator)
    codes = factors + 0.5 * torch.rand(64, 2, generator=generator)
    names: set[str] = set()
    for metric in (metrics.MIG(), metrics.MIG("adaptive"), metrics.SAP(), metrics.DCI(), metrics.IRS()):
        names |= set(metric(codes, factors))
    for shell in (metrics.Modularity("reference"), metrics.Modularity("active"), metrics.Explicitness()):
        names |= set(shell(codes, factors))
    assert {f"val/{name}" for name in names if not name.endswith(("_train", "_seed"))} <= set(tracking.SCORES)


def logged_names() -> set[str]:
    """Everything that the zoo's models log."""
    pictures = [
        "label_traversals",
        "samples",
        "reconstructions",
        "transfers",
        "position_maps",
        "samples_c0",
        "prior_u0",
    ]
    names = {*tracking.SCORES, *(f"pictures/{name}" for name in pictures)}

    for build in MODELS.values():
        model = build()
        for stage, values in (("train", model.train()), ("val", model.eval())):
            terms = values.terms(a_batch())
            names |= {f"{stage}/loss", *(f"{stage}/{name}" for name in terms)}
            names |= {f"{stage}/{name}/{key}" for name, term in terms.items() for key in term.logs}
        for latent in model.latents:
            names |= {
                f"pictures/{name}" for name in (f"traversals_{latent}", f"traversals_{latent}_prior", f"nats_{latent}")
            }
    return names


def panels(section: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel["config"] for panel in section["panels"]]


def test_the_dashboard_shows_what_models_log(recorded: Recorded) -> None:
    view = dashboard.workspace("project", "me")._to_model().model_dump(by_alias=True, exclude_none=True)
    section = json.loads(json.dumps(view["spec"]["section"]))
    sections = {s["name"]: s for s in section["panelBankConfig"]["sections"]}
    assert list(sections) == ["Reconstruction", "KL and capacity", "Disentanglement scores", "Traversals"]
    names, shown = logged_names(), set()
    for panel in [panel for s in sections.values() for panel in panels(s)]:
        keys = set(panel.get("mediaKeys", ())) | {m for m in panel.get("metrics", ()) if isinstance(m, str)}
        if panel.get("useMetricRegex"):
            keys |= {name for name in names if re.search(panel["metricRegex"], name)}
            assert panel["xAxis"] == "trainer/global_step"
        assert keys, panel
        assert keys <= names, keys - names
        shown |= keys
    really = {name for row in recorded.history for name in row if name.startswith(("val/", "pictures/"))}
    assert really - shown == {"val/kl"}  # the weighted term; its nats are shown
    assert section["runSets"][0]["grouping"] == [{"section": "run", "name": "group"}]


def test_one_command_saves_the_dashboard(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    saved: list[Any] = []
    workspaces = pytest.importorskip("wandb_workspaces.workspaces")

    def save(self: Any) -> Any:
        saved.append((self.entity, self.project))
        return type("Saved", (), {"url": "https://wandb.ai/me/shapes?nw=1"})

    monkeypatch.setattr(workspaces.Workspace, "save", save)
    monkeypatch.setattr(wandb, "login", lambda **_: True)
    assert run(["dashboard", "--project=shapes", "--entity=me"]) == 0
    assert saved == [("me", "shapes")]
    assert "https://wandb.ai/me/shapes?nw=1" in capsys.readouterr().out
    monkeypatch.setattr(wandb, "login", lambda **_: False)
    assert run(["dashboard"]) == 1
    assert "wandb login" in capsys.readouterr().err
    assert run(["dashboard", "--projct=a"]) == 2
