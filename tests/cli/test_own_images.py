"""One's own images by the command line alone: four commands from a folder and a table, and a line for what is wrong."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.datasets import folder
from tests.helpers.datasets.folder import Row, table
from tests.helpers.harness import attempt
from vaezoo.cli.main import run

FIT = ["fit", "--data=ImageFolderDataModule", "--data.data_dir=photos", "--data.image_size=32", "--experiment=own"]
SHORT = ["--trainer.max_steps=3", "--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false"]
LARVAE = ["--model=LaRVAE", "--data.labels_file=photos.csv", "--data.labels=1.0"]
LAST = "checkpoints/last.ckpt"


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    monkeypatch.chdir(tmp_path)
    return folder.write(Path("photos"), 300)


def look_at(capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, object], str]:
    """Evaluate, traverse and report the run; its scores, and all that was said."""
    (trained,) = Path("runs/own").iterdir()
    assert run(["evaluate", f"--ckpt_path={trained / LAST}", "--resamples=2"]) == 0
    assert run(["traverse", f"--ckpt_path={trained / LAST}", "--steps=3"]) == 0
    assert run(["report", "runs/own"]) == 0
    assert list((trained / "traversals").glob("image0_*.png"))
    assert "validation image" in Path("report.html").read_text()
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err
    assert "drawn from the prior" not in said.out
    return json.loads((trained / "checkpoints" / "metrics.json").read_text()), said.out


def test_four_commands_from_a_folder_and_a_table(rows: list[Row], capsys: pytest.CaptureFixture[str]) -> None:
    table(Path("photos.csv"), [(name, size if i % 4 else "", colour) for i, (name, size, colour) in enumerate(rows)])
    assert run([*FIT, *LARVAE, *SHORT, "--trainer.callbacks+=SaveLabelTraversals"]) == 0
    scores, said = look_at(capsys)
    assert "network: LaRVAENetwork for 32×32 images of 3 channels: 4 convolutions (32, 32, 64, 64) down to 2×2" in said
    assert scores["data"]["factors"] == ["size", "colour"]  # type: ignore[index]
    assert scores["images"] == 30
    known = scores["metrics"]["mig_20"]["images"]  # type: ignore[index]
    assert 15 < known < 30
    assert f"30 test images of ImageFolderDataModule (file), seed 0; factors and labels are known of {known}" in said
    metrics = set(scores["metrics"])  # type: ignore[call-overload]
    assert {"mig_20", "sap_dip", "dci_fast", "label_distance", "kl"} <= metrics


def test_four_commands_without_any_factor(rows: list[Row], capsys: pytest.CaptureFixture[str]) -> None:
    drawn = ["--trainer.callbacks+=SavePictures", "--trainer.callbacks+=SaveCodeMatrices"]
    with pytest.warns(UserWarning, match="MIG, SAP left out: ImageFolderDataModule has no factors"):
        assert run([*FIT, "--model=BetaVAE", *SHORT, *drawn, "--trainer.callbacks+=EvaluateDisentanglement"]) == 0
    scores, said = look_at(capsys)
    assert set(scores["metrics"]) == {  # type: ignore[call-overload]
        *("gaussian_total_correlation", "active_units", "kl", "reconstruction_error_squared")
    }
    assert "left out: mig_20, mig_adaptive, sap_dip, dci_fast" in said
    assert "the data has no factors to compare codes with" in said
    (trained,) = Path("runs/own").iterdir()
    assert {"covariance", "reconstructions", "samples"} <= {path.stem for path in (trained / "pictures").iterdir()}


def broken(name: str) -> None:
    (Path("photos") / name).write_text("no picture")


@pytest.mark.parametrize(
    ("case", "options", "line"),
    [
        ("unreadable", [], r"photos/007.png cannot be used \(cannot identify image file\): replace or remove"),
        ("column", LARVAE, "labels_file photos.csv has no column file, only name, size, colour"),
        ("factor", [*LARVAE, "--data.factor_columns=[weight]"], "has no column weight, only file, size, colour"),
        ("infinite", LARVAE, "column size holds inf in row 1: give a finite number or nothing"),
        ("missing", LARVAE, "row 2 names lost.png, and photos holds no such picture: correct the row or remove it"),
        ("twins", LARVAE, "row 1 names x.png, which may be a/x.png or b/x.png: give its path below photos"),
        ("empty", [], "data_dir photos holds no pictures: put files such as"),
        ("one", [], r"too few training images \(1\) for one batch of 64: lower batch_size"),
        ("none labelled", ["--model=LaRVAE"], "LaRVAE needs labels, and the data has none: give it factors"),
    ],
)
def test_bad_input_is_one_line(
    case: str, options: list[str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [list(row) for row in folder.write(Path("photos"), 10)]
    header = ["name" if case == "column" else "file", "size", "colour"]
    if case == "unreadable":
        broken("007.png")
    elif case == "infinite":
        rows[0][1] = np.inf
    elif case == "missing":
        rows[1][0] = "lost.png"
    elif case == "twins":
        for name in ("a", "b"):
            (Path("photos") / name).mkdir()
            shutil.copy("photos/000.png", f"photos/{name}/x.png")
        rows[0][0] = "x.png"
    elif case in ("empty", "one"):
        for path in sorted(Path("photos").iterdir())[case == "one" :]:
            path.unlink()
    table(Path("photos.csv"), rows, header)
    model = [] if "--model=LaRVAE" in options else ["--model=BetaVAE"]
    code, said = attempt([*FIT, *SHORT, *model, *options])
    assert code == 1
    assert re.search(line, said), said


def test_a_nan_label_is_one_line_and_counts_as_not_observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = folder.write(Path("photos"), 10)
    table(
        Path("photos.csv"), [(name, "nan" if i == 2 else size, colour) for i, (name, size, colour) in enumerate(rows)]
    )
    with pytest.warns(UserWarning, match=r"photos\.csv: 1 cells of column size are NaN; they count as not observed"):
        assert run([*FIT, *SHORT, *LARVAE, "--data.batch_size=4"]) == 0
