"""A run that was continued is one run; starts that came to nothing are hidden."""

from pathlib import Path

import pytest

from vaezoo.cli.main import run as main
from vaezoo.report.joining import shown_runs
from vaezoo.report.runs import Run, find_runs, read_run


def start(
    folder: Path, rows: str = "", beta: int = 4, after: str = "", steps: int = 9, name: str = "null", saved: bool = True
) -> Path:
    """A run's folder with rows "step:value,…" of train/loss."""
    folder.joinpath("checkpoints").mkdir(parents=True)
    checkpoint = folder.parent / after / "checkpoints" / "last.ckpt" if after else "null"
    config = f"name: {name}\nckpt_path: {checkpoint}\nmodel: {{class_path: BetaVAE, init_args: {{beta: {beta}}}}}\n"
    folder.joinpath("config.yaml").write_text(f"{config}trainer: {{max_steps: {steps}}}\n")
    if rows:
        lines = [f"{step},{value}" for step, value in (pair.split(":") for pair in rows.split(","))]
        folder.joinpath("metrics.csv").write_text("\n".join(["step,train/loss", *lines]))
    if saved:
        folder.joinpath("checkpoints/last.ckpt").touch()
    return folder


def shown(folder: Path) -> list[Run]:
    return shown_runs([read_run(path) for path in find_runs([folder])], 400)[0]


def test_a_continued_run_is_one_curve_and_one_row(tmp_path: Path) -> None:
    start(tmp_path / "1", "0:1.0,5:2.0,8:3.0")
    start(tmp_path / "2", "5:2.0,10:4.0", after="1", steps=20, name="mine")
    start(tmp_path / "3", "15:5.0", after="2", steps=30)
    start(tmp_path / "4", "0:7.0", beta=16)
    other, run = shown(tmp_path)
    assert (run.label, run.path.name, run.checkpoint) == ("mine", "3", tmp_path / "3/checkpoints/last.ckpt")
    assert (other.label, other.path.name) == ("β = 16", "4")
    assert (run.curves["train/loss"].x, run.curves["train/loss"].y) == ([0, 5, 10, 15], [1, 2, 4, 5])
    assert run.scores["train/loss"].value == 5
    assert run.notes[0] == f"continues {tmp_path.name}/1, {tmp_path.name}/2"


def test_runs_that_moved_are_joined_still(tmp_path: Path) -> None:
    start(tmp_path / "old" / "1", "0:1.0")
    start(tmp_path / "old" / "2", "5:2.0", after="1")
    (tmp_path / "old").rename(tmp_path / "new")
    (run,) = shown(tmp_path)
    assert run.curves["train/loss"].x == [0, 5]


def test_of_two_that_continue_the_same_run_the_furthest_stands_for_both(tmp_path: Path) -> None:
    start(tmp_path / "1", "0:1.0,5:2.0")
    start(tmp_path / "2", "6:3.0", after="1", saved=False)  # killed before it saved
    start(tmp_path / "3", "6:3.0,7:4.0", after="1")
    start(tmp_path / "4", "6:9.0", beta=16, after="1")  # goes on with other settings
    names = {run.path.name: run for run in shown(tmp_path)}
    assert list(names) == ["4", "3"]
    assert names["3"].curves["train/loss"].y == [1, 2, 3, 4]
    assert names["4"].curves["train/loss"].y == [1, 2, 9]
    assert [run.label for run in names.values()] == ["β = 16", "β = 4"]


def test_a_test_adds_scores_to_the_run_that_it_tested(tmp_path: Path) -> None:
    start(tmp_path / "1", "0:1.0,5:2.0")
    tested = start(tmp_path / "2", after="1", saved=False)
    (tested / "metrics.csv").write_text("step,test/loss\n0,8.0\n")
    (tested / "checkpoints" / "best.ckpt").touch()  # a test takes it over
    (run,) = shown(tmp_path)
    assert (run.path.name, run.scores["test/loss"].value) == ("1", 8)
    assert run.curves["train/loss"].x == [0, 5]


def test_starts_that_came_to_nothing_are_hidden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, output = tmp_path / "runs", ["-o", str(tmp_path / "report.html")]
    for name in "12":
        start(runs / name, saved=False)
    assert main(["report", str(runs), *output]) == 1
    assert "no run has logged or saved anything; --all shows the 2 that started" in capsys.readouterr().err
    start(runs / "3", "0:1.0", saved=False)
    for more, count in (([], "1 run)"), (["--all"], "3 runs)"), ([str(runs / "1")], "2 runs)")):
        assert main(["report", *more, str(runs), *output]) == 0
        said = capsys.readouterr().out
        assert said.endswith(f"{count}\n")
        assert ("without a logged row or checkpoint" in said) == (more != ["--all"])
    assert "1 without a logged row or checkpoint is hidden: --all shows them" in said
