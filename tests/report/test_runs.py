"""Reading run folders, whole and broken."""

import csv
import math
import os
import shutil
from pathlib import Path

import pytest
from PIL import Image

from tests.helpers.report import write_scores
from vaezoo.cli.main import run as main
from vaezoo.report.logs import thin
from vaezoo.report.runs import find_runs, flat, read_run

pytestmark = pytest.mark.xdist_group("report")


def test_a_run_is_read_whole(joint: Path) -> None:
    run = read_run(joint)
    assert run.name == f"joint/{joint.name}"
    assert (run.setting("model.class_path"), run.setting("seed_everything")) == ("JointVAE", "0")
    assert run.settings["model.init_args.discrete"] == "[3, 4]"
    assert run.checkpoint == joint / "checkpoints" / "last.ckpt"
    assert not run.notes
    rows = list(csv.DictReader((joint / "metrics.csv").open()))
    logged = [float(row["val/loss"]) for row in rows if row["val/loss"]]
    assert len(logged) == 2
    assert run.curves["val/loss"].y == pytest.approx(logged, rel=1e-4)
    assert run.scores["val/loss"].value == logged[-1]
    assert not {"step", "epoch"} & set(run.curves)


def test_evaluated_scores_come_first_with_their_intervals(joint: Path) -> None:
    run = read_run(joint)
    name, score = next(iter(run.scores.items()))
    assert (name, score.value, score.low, score.high, score.main) == ("mig_20", 0.5, 0.4, 0.6, True)
    assert not run.scores["mig_20_0"].main
    assert run.scored == "last.ckpt, 10 images, test"


def test_scores_of_the_drawn_checkpoint_count(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (folder / "last.ckpt").touch()
    for number, name in enumerate(("last", "best")):
        metrics = {"m": {"scores": {"s": number, "odd": "much", "most": {"value": "inf"}}}}
        write_scores(folder / f"metrics_{name}.json", metrics, f"{name}.ckpt")
        os.utime(folder / f"metrics_{name}.json", (number, number))
    run = read_run(tmp_path)
    assert {name: score.value for name, score in run.scores.items()} == {"s": 0, "most": math.inf}


def test_folders_of_runs_newest_first_and_each_once(tmp_path: Path) -> None:
    names = ("a/20250101-000000", "b/20250301-000000", "b/20250201-000000")
    for name in names:
        (tmp_path / name / "checkpoints").mkdir(parents=True)
    found = [str(path.relative_to(tmp_path)) for path in find_runs([tmp_path / names[0], tmp_path])]
    assert found == [names[0], names[1], names[2]]
    with pytest.raises(FileNotFoundError, match="expected a run's folder such as runs/EXPERIMENT/TIME"):
        find_runs([tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no run"):
        find_runs([tmp_path / "empty"])


@pytest.mark.parametrize("missing", ["config.yaml", "metrics.csv", "checkpoints"])
def test_what_is_missing_is_noted(joint: Path, tmp_path: Path, missing: str) -> None:
    folder = shutil.copytree(joint, tmp_path / "run")
    shutil.rmtree(folder / missing) if missing == "checkpoints" else (folder / missing).unlink()
    (note,) = read_run(folder).notes
    assert note.startswith(missing)


@pytest.mark.parametrize("file", ["config.yaml", "metrics.csv", "checkpoints/metrics.json"])
@pytest.mark.parametrize("junk", [b"", b"\xff\x00", b"[1", b"[]", b"step,a\n1,2\n3,x\n4"])
def test_junk_does_not_stop_the_reader(joint: Path, tmp_path: Path, file: str, junk: bytes) -> None:
    folder = shutil.copytree(joint, tmp_path / "run")
    (folder / file).write_bytes(junk)
    assert read_run(folder).checkpoint is not None


@pytest.mark.parametrize("linked", ["config.yaml", "metrics.csv", "checkpoints", "checkpoints/metrics.json", "a.png"])
def test_links_out_of_a_run_are_refused(joint: Path, tmp_path: Path, linked: str) -> None:
    folder, elsewhere = shutil.copytree(joint, tmp_path / "run"), tmp_path / "elsewhere"
    path = folder / "pictures" / linked if linked.endswith("png") else folder / linked
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        path.rename(elsewhere)  # what would be read well
    else:
        Image.new("RGB", (2, 2)).save(elsewhere, "png")
    path.symlink_to(elsewhere)
    run = read_run(folder)
    assert [note for note in run.notes if f"{path}" in note and "leads out of" in note], run.notes
    read = {
        "config.yaml": run.config,
        "metrics.csv": run.curves,
        "checkpoints": run.checkpoint,
        "checkpoints/metrics.json": run.scored,
        "a.png": run.pictures,
    }
    assert not read[linked]


def test_a_link_within_a_run_is_fine(joint: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(joint, tmp_path / "run")
    (folder / "config.yaml").rename(folder / "saved.yaml")
    (folder / "config.yaml").symlink_to("saved.yaml")
    assert not read_run(folder).notes


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["config.yaml", "metrics.csv", "checkpoints/metrics.json", "checkpoints/last.ckpt"])
def test_a_pipe_in_a_run_does_not_hang_the_reader(joint: Path, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(joint, tmp_path / "run")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    run = read_run(folder)
    assert name == "checkpoints/last.ckpt" or any("is no plain file" in note for note in run.notes), run.notes


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))
MERGES = "a0: &a0 {k: x}\n" + "".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 30))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("bomb", [BOMB, MERGES, "a: &a [*a]\n", "- x\n" * 10**5, "[" * 5000])
def test_a_yaml_bomb_is_a_note(joint: Path, tmp_path: Path, bomb: str) -> None:
    folder = shutil.copytree(joint, tmp_path / "run")
    (folder / "config.yaml").write_text(bomb)
    (note,) = read_run(folder).notes
    assert "config.yaml is no YAML of plain data" in note


@pytest.mark.timeout(60)
def test_a_yaml_bomb_as_the_configuration_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bomb.yaml").write_text(BOMB)
    assert main(["validate", "--config", str(tmp_path / "bomb.yaml")]) == 2
    assert capsys.readouterr().err.endswith("its aliases stand for more than 100000 values\n")


def test_aliases_that_a_configuration_may_hold_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("a: &a {b: 1}\nc: *a\nd: 'all * of it'\n")
    assert read_run(tmp_path).config == {"a": {"b": 1}, "c": {"b": 1}, "d": "all * of it"}


def test_steps_that_no_chart_can_count_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("step,val/loss\n1,1.0\n1e17,2.0\n-1e17,3.0\n1e308,4.0\ninf,5.0\n2,6.0\n")
    assert read_run(tmp_path).curves["val/loss"].x == [1, 2]


def test_curves_are_averaged_and_what_is_not_finite_is_a_gap() -> None:
    curve = thin([(3, 4.0), (0, 1.0), (1, 2.0), (2, 3.0), (4, math.nan)], points=3)
    assert (curve.x, curve.y) == ([1, 3, 4], [1.5, 3.5, None])


def test_settings_are_flat() -> None:
    nested = {"a": {"b": None, "c": [1, 2], "d": {}}, "e": [{"f": True}]}
    assert flat(nested) == {"a.b": "null", "a.c": "[1, 2]", "a.d": "{}", "e.0.f": "True"}
