"""Files of results and tables of statistics, against numbers worked out by hand."""

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from vaezoo.metrics.catalogue import higher_is_better
from vaezoo.study.file import read_study
from vaezoo.study.folder import JobFolder
from vaezoo.study.grid import Run, expand
from vaezoo.study.results import markdown, records, statistics, tables, write_all
from vaezoo.study.screen import Line, Screen
from vaezoo.study.stopping import Stopper


def run(part: str, seed: int, **place: Any) -> Run:
    name = "-".join([part, *(f"{k}={v}" for k, v in place.items()), f"s{seed}"])
    return Run(name, part, Path(f"{part}.yaml"), {}, place, {f"model.{k}": v for k, v in place.items()}, seed, {})


def result(**scores: float | str) -> dict[str, Any]:
    measured = {"polar_error": {"polar_error": scores["polar"]}, "mig_20": {"mig_20": scores["mig"], "mig_20_0": 0.0}}
    facts = {"steps": 9, "seconds": 1.5, "attempts": 1, "stopped": False, "folder": "f", "checkpoint": "c"}
    return {**facts, "scores": measured}


RUNS = [*(run("wela", seed, bins=2) for seed in range(3)), run("tc", 0), run("tc", 1)]
RESULTS = {
    "wela-bins=2-s0": result(polar=4, mig=0.2),
    "wela-bins=2-s1": result(polar=8, mig=0.4),
    "wela-bins=2-s2": result(polar=6, mig="inf"),
    "tc-s0": result(polar=10, mig=0.1),
}


def test_statistics_of_a_row() -> None:
    # Standard deviation with n - 1: sqrt((4 + 0 + 4) / 2) = 2.
    assert statistics([4, 6, 8], False) == {**{"n": "3", "mean": "6 ± 2", "lowest": "4", "highest": "8", "best": "4"}}
    assert statistics([4, 6, 8], True)["best"] == "8"
    assert statistics([4, 6, 8], None)["best"] == ""
    assert statistics([100, 300], False)["mean"] == "200 ± 141"
    assert statistics([5], True) == {"n": "1", "mean": "5", "lowest": "5", "highest": "5", "best": "5"}
    fifty = [float(x) for x in range(50)]
    assert statistics(fifty, False)["best"] == "2"  # of 0 to 4
    assert statistics(fifty, True)["best"] == "47"  # of 45 to 49
    assert statistics([1, math.inf], True)["mean"] == "inf"


def test_directions() -> None:
    assert [higher_is_better(name) for name in ("mig_20", "polar_error", "label_distance", "kl")] == [
        *(True, False, False, None)
    ]


def test_a_table_has_a_row_for_the_seeds_of_one_place() -> None:
    polar, mig = tables(records(RUNS, RESULTS, "full"), RUNS, RESULTS, {})
    assert (polar.score, polar.direction, mig.score, mig.direction) == ("polar_error", False, "mig_20", True)
    assert polar.header == ["config", "bins", "n", "mean ± std", "lowest", "highest", "mean of the best 10 %"]
    assert polar.rows == [["wela", "2", "3", "6 ± 2", "4", "8", "4"], ["tc", "", "1", "10", "10", "10", "10"]]
    chosen = {"rows": ["bins"], "scores": ["polar_error"], "statistics": ["n", "lowest"]}
    (table,) = tables(records(RUNS, RESULTS, "full"), RUNS, RESULTS, chosen)
    assert (table.header, table.rows) == (["bins", "n", "lowest"], [["2", "3", "4"], ["", "1", "10"]])
    assert "## polar_error (lower is better)\n\n| bins | n | lowest |\n" in markdown("study", [table])


def test_files_hold_all_runs(tmp_path: Path) -> None:
    mixed = [*RUNS, run("tc", 2, bins="all")]  # one column, numbers and text
    written = write_all(tmp_path, "study", mixed, RESULTS, "short", {})
    assert [path.name for path in written] == ["results.csv", "results.parquet", "summary.md", "summary.tex"]
    for frame in (pd.read_csv(written[0]), pd.read_parquet(written[1])):
        assert list(frame["run"]) == [run.name for run in mixed]
        assert list(frame["finished"]) == [True] * 4 + [False] * 2
        assert set(frame["budget"]) == {"short"}
        assert list(frame["polar_error"][:4]) == [4, 8, 6, 10]
        assert math.isinf(frame["mig_20"][2])
        assert pd.isna(frame["polar_error"][4])
        assert json.loads(frame["overrides"][0]) == {"model.bins": 2}
        assert list(frame["bins"].astype("string").fillna(""))[-1] == "all"
    assert r"\begin{tabular}{lllllll}" in written[3].read_text()
    assert list(tmp_path.glob(".*")) == []


def test_an_axis_called_steps_keeps_its_values_beside_the_steps_taken(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("model: {class_path: AnnealedVAE}\n")
    study = {"configs": {"a": str(tmp_path / "a.yaml")}, "seeds": [0], "grid": {"model.steps": [1, 2]}}
    (tmp_path / "study.yaml").write_text(json.dumps(study))
    runs = expand(read_study(tmp_path / "study.yaml"))
    scores = {run.name: result(polar=place, mig=0.0) for place, run in enumerate(runs, 1)}
    write_all(tmp_path, "title", runs, scores, "full", {"scores": ["polar_error"]})
    frame = pd.read_csv(tmp_path / "results.csv")
    assert list(frame["model.steps"]) == [1, 2]
    assert list(frame["steps"]) == [9, 9]
    assert (tmp_path / "summary.md").read_text().count("| a |") == 2, "one row each"


def test_a_study_without_results_has_files_too(tmp_path: Path) -> None:
    write_all(tmp_path, "study", RUNS, {}, "full", {})
    assert len(pd.read_parquet(tmp_path / "results.parquet")) == len(RUNS)


def test_progress_is_the_last_whole_line(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    assert folder.progress() is None
    for attempt, text in {
        "20260101-000000": "step,train/loss,val/loss\n49,5.0,\n50,,7\n99,4.0,\n",
        "20260101-000001": "step,train/loss,val/loss\n99,4.1,\n149,3.0,\n150,,6\n19",
    }.items():
        (tmp_path / attempt).mkdir()
        (tmp_path / attempt / "metrics.csv").write_text(text)
    assert folder.progress() == (149, 3.0)
    assert list(folder.logged("val/loss")) == [(50, 7.0), (150, 6.0)]
    long = "step,train/loss\n" + "".join(f"{i},{i / 7:.9f}\n" for i in range(20000))
    (tmp_path / "20260101-000001" / "metrics.csv").write_text(long)
    assert folder.progress() == (19999, pytest.approx(19999 / 7))


def test_a_checkpoint_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    counts = {"total": {}, "current": {}}
    places = ("epoch_progress", "epoch_loop.batch_progress", "epoch_loop.val_loop.batch_progress")
    content = {"state_dict": {"x": torch.zeros(99)}, "loops": {"fit_loop": dict.fromkeys(places, counts)}}
    content |= {"optimizer_states": [{}], "lr_schedulers": [], "callbacks": {}}
    for step, attempt in enumerate(("a", "b")):
        (tmp_path / attempt / "checkpoints").mkdir(parents=True)
        torch.save(content | {"global_step": step}, tmp_path / attempt / "checkpoints" / "last.ckpt")
    newest = tmp_path / "b" / "checkpoints" / "last.ckpt"
    assert JobFolder(tmp_path).checkpoint() == newest
    newest.write_bytes(newest.read_bytes()[:-50])
    assert JobFolder(tmp_path).checkpoint() == tmp_path / "a" / "checkpoints" / "last.ckpt"


def test_asha_stops_the_worse_of_runs(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    folders = [tmp_path / name for name in "abcd"]
    options = {"class": "ASHA", "metric": "val/loss", "mode": "min", "grace_period": 10, "reduction_factor": 2}
    stopper = Stopper(options, folders)
    behind = {}
    for loss, folder in enumerate(folders):
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "metrics.csv").write_text(f"step,val/loss\n5,{9 - loss}\n10,{loss}\n")
        behind[folder.name] = stopper.behind(folder)
    assert behind == {"a": False, "b": True, "c": True, "d": True}
    assert stopper.behind(folders[1]), "once behind, always behind"
    assert not Stopper({}, folders).behind(folders[3])
    with pytest.raises(ValueError, match="argument 'grace'"):
        Stopper({**options, "grace": 1}, folders)


class Terminal:
    """Keeps what is written; a terminal or none."""

    def __init__(self, tty: bool) -> None:
        self.text, self.tty = "", tty

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return self.tty


def test_the_screen_prints_changes_and_redraws_a_terminal() -> None:
    a, b = Line("a"), Line("b")
    plain, terminal = Terminal(False), Terminal(True)
    screens = [Screen(plain), Screen(terminal)]  # type: ignore[arg-type]
    for step in (None, 50, 100):
        a.state, a.step, a.loss, a.seconds = "running", step, 3.25, 61
        for screen in screens:
            screen.show([a, b])
    assert plain.text == "a  running  3.25  0:01:01\n", "one line a change of state"
    a.state, b.state, b.note = "done", "failed", "why"
    for screen in screens:
        screen.show([a, b])
    assert plain.text.splitlines()[1:] == ["a  done  100  3.25  0:01:01", "b  failed  why"]
    assert terminal.text.count("\x1b[4F") == 3
    assert "1 failed, 1 done" in terminal.text
