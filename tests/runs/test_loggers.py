"""TensorBoard and MLflow, named without arguments: their files in the run's folder, read back by their own code."""

import shutil
import socket
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jsonargparse import Namespace
from lightning.pytorch.loggers import TensorBoardLogger
from PIL import Image

from tests.helpers.commands import NETWORK, SMALL
from vaezoo.cli.main import run
from vaezoo.runs import loggers
from vaezoo.runs.folder import RunFolder

pytestmark = pytest.mark.xdist_group("loggers")  # one worker makes what all of them read
FIT = ["--model=BetaVAE", "--model.beta=7", SMALL, NETWORK, "--trainer.max_steps=2", "--trainer.log_every_n_steps=1"]
FIT += ["--trainer.val_check_interval=1", "--trainer.limit_val_batches=1", "--trainer.num_sanity_val_steps=0"]
FIT += ["--trainer.enable_progress_bar=false", "--trainer.accelerator=cpu", "--seed_everything=3"]
SEEN = ["--trainer.callbacks+=SavePictures", "--trainer.callbacks.steps=3"]
SCORED = [
    "--trainer.callbacks+=EvaluateDisentanglement",
    "--trainer.callbacks.images=90",
    "--trainer.callbacks.split=train",
]
BOTH = ["--trainer.logger=TensorBoardLogger", "--trainer.logger+=MLFlowLogger"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    pytest.importorskip("tensorboard")
    pytest.importorskip("mlflow")
    folder = tmp_path_factory.mktemp("logged")
    assert run(["fit", *FIT, *SEEN, *SCORED, *BOTH, "--experiment=first", f"--runs_dir={folder}"]) == 0
    (path,) = (folder / "first").iterdir()
    return RunFolder(path)


@pytest.fixture(scope="module")
def events(trained: RunFolder) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(trained.tensorboard), size_guidance={"images": 0, "scalars": 0})
    read.Reload()
    return read


@pytest.fixture
def client(trained: RunFolder, monkeypatch: pytest.MonkeyPatch) -> Any:
    from mlflow import MlflowClient

    monkeypatch.setenv(loggers.FILE_STORE, "true")
    return MlflowClient(f"file:{trained.mlflow}")


def the_run(client: Any) -> Any:
    (found,) = client.search_runs([client.get_experiment_by_name("first").experiment_id])
    return found


def logged(trained: RunFolder, name: str) -> list[float]:
    """A column of metrics.csv."""
    header, *rows = [line.split(",") for line in trained.log.read_text().splitlines()]
    return [float(row[header.index(name)]) for row in rows if row[header.index(name)]]


def pixels(trained: RunFolder, name: str) -> Any:
    return np.asarray(Image.open(trained.pictures / f"{name}.png"))


def test_tensorboard_has_scores_and_pictures_by_step(trained: RunFolder, events: Any) -> None:
    for name in ("val/loss", "val/kl/nats", "val/mig_20"):
        assert [event.value for event in events.Scalars(name)] == pytest.approx(logged(trained, name), rel=1e-5)
    for name in ("reconstructions", "samples", "traversals_z", "traversals_z_prior"):
        images = events.Images(f"pictures/{name}")
        assert [image.step for image in images] == [1, 2]
        (trained.path / "read.png").write_bytes(images[-1].encoded_image_string)
        assert np.abs(np.asarray(Image.open(trained.path / "read.png")).astype(int) - pixels(trained, name)).max() <= 1


def test_tensorboard_has_hyperparameters(events: Any) -> None:
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    content = events.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    found = dict(HParamsPluginData.FromString(content).session_start_info.hparams)
    assert found["beta"].number_value == 7
    assert found["seed_everything"].number_value == 3
    assert found["data"].string_value == "SmallDataModule"
    assert found["family"].string_value == "BetaVAE"


def test_mlflow_has_scores_hyperparameters_and_pictures(trained: RunFolder, client: Any, tmp_path: Path) -> None:
    found = the_run(client)
    assert found.info.status == "FINISHED"
    assert found.info.run_name == trained.path.name
    for name, said in {"val/loss": "val/loss", "val/kl/nats": "val/kl.nats", "val/mig_20": "val/mig_20"}.items():
        history = [metric.value for metric in client.get_metric_history(found.info.run_id, said)]
        assert history == pytest.approx(logged(trained, name), rel=1e-5)
    expected = {"beta": "7.0", "seed_everything": "3", "data": "SmallDataModule", "family": "BetaVAE"}
    assert {key: found.data.params[key] for key in expected} == expected
    files = [file.path for file in client.list_artifacts(found.info.run_id, "images") if file.path.endswith(".png")]
    (last,) = [file for file in files if "traversals_z+" in file and "+step+2+" in file]
    read = np.asarray(Image.open(client.download_artifacts(found.info.run_id, last, str(tmp_path))))
    assert np.abs(read.astype(int) - pixels(trained, "traversals_z")).max() <= 1
    assert len(files) == 2 * 4  # steps and pictures


def test_all_is_in_the_run_s_folder_and_names_no_machine(trained: RunFolder, client: Any) -> None:
    assert {path.name for path in trained.path.parent.parent.iterdir()} == {"first"}
    (file,) = trained.tensorboard.glob("events*")
    assert socket.gethostname() not in file.name.split(".")
    tags = the_run(client).data.tags
    assert tags["mlflow.user"] == "unknown"
    assert tags["mlflow.source.name"] == "vaezoo"
    config = trained.config.read_text()
    assert str(trained.path) not in config  # a run that repeats this one has a folder of its own
    assert "lightning.pytorch.loggers.TensorBoardLogger" in config


def test_lightning_s_own_logger_takes_pictures_too(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    logger = TensorBoardLogger(str(tmp_path), name="", version="mine")
    loggers.log_picture(logger, "pictures/a", torch.rand(3, 4, 5), 7)
    logger.finalize("success")
    read = accumulator.EventAccumulator(str(tmp_path / "mine"))
    read.Reload()
    (image,) = read.Images("pictures/a")
    assert (image.step, image.height, image.width) == (7, 4, 5)


def test_what_the_user_gives_stays(tmp_path: Path) -> None:
    board = Namespace(save_dir="mine", version=None, name="lightning_logs")
    flow = Namespace(tracking_uri="http://x", save_dir="./mlruns", experiment_name="e", run_name="r", tags={"a": "b"})
    for name, args in {"TensorBoardLogger": board, "MLFlowLogger": flow}.items():
        loggers.fill_in_paths(Namespace(class_path=f"lightning.{name}", init_args=args), tmp_path, "first")
    assert (board.save_dir, board.version, board.name) == ("mine", None, "lightning_logs")
    assert (flow.tracking_uri, flow.save_dir, flow.experiment_name, flow.run_name) == ("http://x", "./mlruns", "e", "r")
    assert flow.tags == {**loggers.NAMELESS, "a": "b"}


@pytest.mark.parametrize(("name", "extra"), [("TensorBoardLogger", "tensorboard"), ("MLFlowLogger", "mlflow")])
def test_a_missing_extra_is_one_line(
    name: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(loggers, "find_spec", lambda package: None)
    assert run(["fit", *FIT, f"--trainer.logger={name}", f"--runs_dir={tmp_path}"]) == 1
    assert f"{name} needs one more package: pip install 'vaezoo[{extra}]'" in capsys.readouterr().err
    assert not list(tmp_path.glob("*/*"))


def test_an_mlflow_that_fails_warns_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.setenv(loggers.FILE_STORE, "true")
    logger = loggers.MLflowLog(save_dir=str(tmp_path / "mlruns"))
    logger.log_metrics({"val/kl": 1.0, "val/kl/nats": 2.0}, 0)
    shutil.rmtree(tmp_path / "mlruns")
    with pytest.warns(UserWarning, match="MLflow could not log"):
        logger.log_metrics({"val/kl": 1.0}, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logger.log_hyperparams({"a": 1})
        logger.finalize("success")
