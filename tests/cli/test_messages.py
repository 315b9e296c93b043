"""What a user meets who sets up data, labels and modules in the wrong way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.commands import MODELS, NETWORK, SHORT, SMALL
from tests.helpers.harness import attempt
from tests.helpers.paths import ROOT
from vaezoo.__main__ import hides_data, put_current_folder_last
from vaezoo.cli.main import run

FIT = ["fit", *SHORT, "--trainer.enable_progress_bar=false", "--trainer.accelerator=cpu"]
BLOBS = ["--data=BlobsDataModule", "--data.batch_size=4", "--data.samples=1", "--data.val_size=8", "--data.test_size=8"]
LARVAE = [*FIT, "--model=LaRVAE", NETWORK, *BLOBS]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("labels", ["null", "0"])
def test_a_supervised_model_without_labels_warns(labels: str) -> None:
    with pytest.warns(UserWarning, match=r"no labelled image, so LaRVAE learns no labels: set data\.labels"):
        assert run([*LARVAE, f"--data.labels={labels}"]) == 0


@pytest.mark.parametrize("name", ["image_shape", "label_sizes"])
def test_what_comes_from_the_data_is_not_set_by_hand(name: str) -> None:
    model = ["--model=WeLaVAE", f"--model.{name}=[1,2,3]"]
    code, line = attempt([*FIT, *model, *BLOBS])
    assert (code, f"model.{name}: it comes from the data: remove it" in line) == (2, True), line


@pytest.mark.parametrize("option", ["--model=no_such_zoo.MyVAE", "--data=no_such_zoo.MyData"])
def test_a_module_that_is_not_found_says_how_to_put_it_on_the_path(option: str) -> None:
    code, line = attempt([*FIT, *MODELS["beta"], *BLOBS, option])
    assert code == 2
    assert "there is no module 'no_such_zoo', neither installed nor in the current folder" in line
    assert "PYTHONPATH=FOLDER vaezoo" in line


def test_classes_in_the_current_folder_are_found_by_their_names() -> None:
    Path("own_zoo_here.py").write_text("from vaezoo import BetaVAE\n\n\nclass OwnBeta(BetaVAE):\n    pass\n")
    before = list(sys.path)
    assert run([*FIT, "--model=own_zoo_here.OwnBeta", NETWORK, SMALL]) == 0
    assert sys.path == before


def test_a_foreign_package_of_data_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "datamodules").mkdir()
    (tmp_path / "datamodules" / "__init__.py").write_text("raise RuntimeError('it is not imported')\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = [sys.executable, "-m", "vaezoo", "experiments"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, cwd=ROOT.parent, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"vaezoo: error: {tmp_path / 'datamodules'} hides vaezoo's own package of that name: rename")


def test_the_current_folder_is_put_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hides_data() == ""
    for first in ("", str(tmp_path)):
        monkeypatch.setattr(sys, "path", [first, "elsewhere"])
        put_current_folder_last()
        assert sys.path == ["elsewhere", first]
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "path", [str(ROOT), "elsewhere"])
    put_current_folder_last()
    assert sys.path[0] == str(ROOT), "a clone finds its own"
