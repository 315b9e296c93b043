"""What W&B's SDK sends over the wire, as a server on this machine gets it: real commands, the SDK's own processes."""

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from tests.helpers.paths import ROOT
from tests.helpers.processes import command
from tests.helpers.wandb_server import KEY, Artifact, Run, WandbServer, wandb_server
from vaezoo.tracking.wandb_private import sessions

pytestmark = pytest.mark.xdist_group("wandb")

FIT = ["fit", "--model=BetaVAE", "--model.network=DenseNetwork", "--data=BlobsDataModule", "--data.batch_size=32"]
FIT += ["--model.network.encoder_widths=[16]", "--model.network.decoder_widths=[16]", "--trainer.max_steps=2"]
FIT += [
    "--trainer.limit_val_batches=1",
    "--trainer.val_check_interval=2",
    "--trainer.log_every_n_steps=1",
    "--trainer.logger=WandbLogger",
]
FIT += ["--trainer.enable_progress_bar=false", "--trainer.callbacks+=SavePictures", "--seed_everything=3"]
SCORE = ["evaluate", "--metrics", "mig_20", "--images=200", "--resamples=20"]


class Sent(NamedTuple):
    """A run that was trained, scored and drawn online."""

    server: WandbServer
    folder: Path
    environment: dict[str, str]

    @property
    def path(self) -> Path:
        (path,) = (self.folder / "runs" / "wire").iterdir()
        return path

    @property
    def id(self) -> str:
        return str(json.loads((self.path / "wandb.json").read_text())["id"])

    @property
    def run(self) -> Run:
        return self.server.runs[self.id]

    def vaezoo(self, *args: str, **environment: str) -> str:
        code, said = command(list(args), self.folder, self.environment | environment)
        assert code == 0, said[-2000:]
        return said

    def artifacts(self, name: str) -> dict[str, Artifact]:
        """Versions of an artifact by what they are called besides "latest"."""
        found = [artifact for artifact in self.server.artifacts if artifact.name == name and artifact.committed]
        return {alias: artifact for artifact in found for alias in artifact.aliases if alias != "latest"}

    def content(self, artifact: Artifact, name: str) -> bytes:
        return self.server.store[base64.b64decode(artifact.manifest["contents"][name]["digest"]).hex()]


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sent]:
    folder = tmp_path_factory.mktemp("wire")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("WANDB_", "VAEZOO_"))}
    with wandb_server() as server:
        (folder / "home-of-somebody").mkdir()
        home = {"HOME": str(folder / "home-of-somebody"), "PYTHONPATH": str(ROOT), "WANDB_SILENT": "true"}
        sent = Sent(server, folder, clean | home | {"WANDB_BASE_URL": server.address, "WANDB_API_KEY": KEY})
        sent.vaezoo(*FIT, "--trainer.logger.log_model=all", "--experiment=wire")
        sent.vaezoo(*SCORE, f"--ckpt_path={sent.path}/checkpoints/best.ckpt")
        yield sent
        assert not server.unknown


def test_the_server_gets_a_run_with_its_facts(sent: Sent) -> None:
    facts = sent.run.facts
    assert (facts["project"], facts["groupName"], facts["jobType"]) == ("vaezoo", "wire", "fit")
    assert facts["displayName"] == f"wire-{sent.path.name}"
    assert set(facts["tags"]) == {"BetaVAE", "Higgins et al., 2017", "Blobs", "source: render", "seed: 3"}
    config = {name: entry["value"] for name, entry in sent.run.config.items()}
    assert (config["experiment"], config["seed"], config["beta"]) == ("wire", 3, 4.0)
    assert config["cli"]["data"]["init_args"]["batch_size"] == 32
    assert sent.run.ended == 2  # after training, and after the scores


def test_the_server_gets_rows_summaries_and_pictures(sent: Sent) -> None:
    rows = sent.run.rows
    assert [row["_step"] for row in rows] == list(range(len(rows)))  # the second session goes on where the first ended
    assert [row["trainer/global_step"] for row in rows if "train/loss" in row] == [0, 1]
    losses = [row["val/loss"] for row in rows if "val/loss" in row]
    assert sent.run.summary["val/loss"] == {"min": min(losses), "last": losses[-1]}
    for name in ("reconstructions", "samples", "traversals_z", "traversals_z_prior"):
        pictures = [file for row in rows for file in row.get(f"pictures/{name}", {}).get("filenames", ())]
        assert len(pictures) == 1  # drawn after the last validation, which is the end of training
        assert sent.run.files[pictures[0]].startswith(b"\x89PNG")


def test_scores_of_a_checkpoint_reach_the_run_that_trained_it(sent: Sent) -> None:
    written = json.loads((sent.path / "checkpoints" / "metrics.json").read_text())
    score = written["metrics"]["mig_20"]["scores"]["mig_20"]
    ends = {"": score["value"], "/low": score["low"], "/high": score["high"]}
    assert {end: sent.run.summary[f"evaluate/best/mig_20{end}"] for end in ends} == pytest.approx(ends)
    assert [row["trainer/global_step"] for row in sent.run.rows if "evaluate/best/mig_20" in row] == [2]
    stored = sent.artifacts(f"evaluate-{sent.id}")["best"]
    assert json.loads(sent.content(stored, "metrics.json")) == written
    scores = json.loads(sent.run.files[sent.run.summary["evaluate/best/scores"]["path"]])
    assert scores["columns"] == ["run", "mig_20", "mig_20 low", "mig_20 high"]
    assert scores["data"] == [[f"wire/{sent.path.name}", *map(pytest.approx, ends.values())]]
    (table,) = [a for a in sent.server.artifacts if "images.table.json" in "".join(a.manifest["contents"])]
    (name,) = [name for name in table.manifest["contents"] if name.endswith(".table.json")]
    images = json.loads(sent.content(table, name))
    units = [f"z{unit}" for unit in range(10)]
    assert images["columns"] == ["image", "reconstruction", *units, "row", "column", "radius"]
    assert len(images["data"]) == 32
    for picture in images["data"][0][:2]:
        assert sent.content(table, picture["path"]).startswith(b"\x89PNG")


def test_checkpoints_are_artifacts(sent: Sent) -> None:
    stored = sent.artifacts(f"model-{sent.id}")
    assert stored.keys() == {"best", "last"}
    for name, artifact in stored.items():
        assert artifact.type == "model"
        assert set(artifact.manifest["contents"]) == {f"{name}.ckpt", "config.yaml", "labelled_ids.npy"}
        assert sent.content(artifact, f"{name}.ckpt") == (sent.path / "checkpoints" / f"{name}.ckpt").read_bytes()
        expected = {"checkpoint": name, "class": "BetaVAE", "data": "BlobsDataModule", "source": "render", "step": 2}
        assert {key: artifact.metadata[key] for key in expected} == expected
        assert artifact.metadata["scores"]["val/loss"] == sent.run.summary["val/loss"]["last"]


def test_a_checkpoint_is_fetched_by_its_address(sent: Sent) -> None:
    address = f"wandb:me/vaezoo/model-{sent.id}:best"
    said = sent.vaezoo(*SCORE, "--wandb=false", f"--ckpt_path={address}")
    fetched = Path("artifacts", "me", "vaezoo", f"model-{sent.id}", "v1", "best.ckpt")
    assert str(fetched.parent) in said
    before = (sent.path / "checkpoints" / "best.ckpt").read_bytes()
    assert (sent.folder / fetched).read_bytes() == before
    # A version never changes: it is there without the server.
    version = address.replace(":best", ":v1")
    sent.vaezoo(*SCORE, "--wandb=false", "--ckpt_path", version, WANDB_BASE_URL="http://127.0.0.1:1")


@pytest.mark.slow
def test_what_was_added_offline_arrives_by_sync(sent: Sent) -> None:
    sent.vaezoo(*FIT, "--experiment=later", WANDB_MODE="offline")
    (path,) = (sent.folder / "runs" / "later").iterdir()
    said = sent.vaezoo(*SCORE, f"--ckpt_path={path}/checkpoints/last.ckpt")  # waits for the training, though online
    assert "wandb sync" in said
    files = [str(file.parent) for file in sessions(path)]
    assert len(files) == 2
    sync = [sys.executable, "-m", "wandb", "sync", *files]
    subprocess.run(sync, env=sent.environment, cwd=sent.folder, check=True, capture_output=True, timeout=100)
    run = sent.server.runs[json.loads((path / "wandb.json").read_text())["id"]]
    assert run.facts["groupName"] == "later"
    assert [row["trainer/global_step"] for row in run.rows if "train/loss" in row] == [0, 1]
    assert {"train/loss", "val/loss", "pictures/samples", "evaluate/last/mig_20/low"} <= run.summary.keys()
    assert run.config["beta"] == {"value": 4.0}


def test_nothing_tells_of_the_machine_or_its_user(sent: Sent) -> None:
    texts = [body for body in sent.server.bodies if body.isascii()]  # a short name is in any large file of numbers
    assert sum(map(len, texts)) > 10_000
    host = re.escape(os.uname().nodename.encode())
    for secret in (KEY, sent.environment["HOME"], str(Path.home()), sys.executable):
        assert not [body for body in sent.server.bodies if secret.encode() in body], secret
    assert not [text for text in texts if re.search(rb"\b" + host + rb"\b", text)]


def test_weights_are_what_they_were(sent: Sent) -> None:
    stored = sent.content(sent.artifacts(f"model-{sent.id}")["last"], "last.ckpt")
    file = sent.folder / "copy.ckpt"
    file.write_bytes(stored)
    assert "state_dict" in torch.load(file, weights_only=True)
