"""Which checkpoint `--ckpt_path last` continues from, whatever lies in the experiment's folder."""

import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers.continuing import change, fit, same_state, the_run
from vaezoo.cli.main import run
from vaezoo.runs.checkpoint_io import read_checkpoint
from vaezoo.runs.folder import RunFolder


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_best_checkpoint_that_was_taken_over_is_not_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(6) == 0
    first = the_run()
    taken_over = RunFolder(Path("runs/exp/29990101-000000"))  # of a run that was killed before it saved anything
    taken_over.checkpoints.mkdir(parents=True)
    shutil.copy(first.config, taken_over.config)
    shutil.copy(first.previous, taken_over.best)
    assert fit(8) == 0
    assert f"continuing from {first.last}, step 6" in capsys.readouterr().out


@pytest.mark.parametrize("gone", [False, True], ids=["behind", "never written"])
def test_a_run_killed_between_the_two_saves_of_its_last_step_is_complete(
    gone: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(2) == 0
    run = the_run()
    assert read_checkpoint(run.best)["global_step"] == 2
    change(run.last, global_step=1)
    if gone:
        run.last.unlink()
    assert fit(2) == 0
    assert f"the run of {run.last} is complete after step 2" in capsys.readouterr().out
    assert the_run() == run
    same_state(run.last, run.best)


def test_the_furthest_run_counts_and_not_the_name_of_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(2) == 0
    old = the_run()
    assert fit(4) == 0
    _, new = RunFolder.all_in(Path("runs/exp"))
    back = new.path.rename("runs/exp/19700101-000000")  # a clock that was set back
    copied = Path(shutil.copytree(old.path, "runs/exp/29990101-000000"))
    os.utime(copied / "checkpoints" / "last.ckpt")
    assert fit(4) == 0
    assert f"the run of {RunFolder(back).last} is complete after step 4" in capsys.readouterr().out
    assert fit(6) == 0
    assert f"continuing from {RunFolder(back).last}, step 4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "warning"),
    [("", "holds no settings"), ("- 1", "holds no settings"), ("a: [", "is no YAML"), ("a: \0", "is no YAML")],
    ids=["empty", "list", "cut off", "bytes"],
)
def test_a_damaged_configuration_does_not_block_other_runs(
    content: str, warning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(2) == 0
    first = the_run()
    odd = RunFolder(Path(shutil.copytree(first.path, "runs/exp/29990101-000000")))
    odd.config.write_text(content)
    with pytest.warns(UserWarning, match=rf"config.yaml {warning}.*: continuing from"):
        assert fit(4) == 0
    assert f"continuing from {first.last}, step 2" in capsys.readouterr().out


def test_odd_checkpoints_do_not_block_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(2) == 0
    first = the_run()
    first.checkpoints.joinpath("dangling.ckpt").symlink_to("nowhere")
    first.checkpoints.joinpath("folder.ckpt").mkdir()
    os.mkfifo(first.checkpoints / "fifo.ckpt")
    first.checkpoints.joinpath("text.ckpt").write_text("no zip file")
    torch.save({"state_dict": {}, "odd": Path()}, first.checkpoints / "odd.ckpt")
    torch.save([1], first.checkpoints / "list.ckpt")
    weights = first.checkpoints / "weights.ckpt"
    torch.save(read_checkpoint(first.last) | {"optimizer_states": [], "global_step": 100}, weights)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert fit(4) == 0
    text = "\n".join(str(warning.message) for warning in said)
    assert "text.ckpt is damaged" in text
    assert "odd.ckpt holds more than" in text
    assert "list.ckpt is no checkpoint" in text
    assert "weights.ckpt holds no state of the optimizers" in text
    assert f"continuing from {first.last}, step 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("parts", "missing"),
    [
        ({"loops": {}}, "progress of its epochs and batches (loops)"),
        ({"loops": {"fit_loop": {}}}, "progress of its epochs and batches (loops)"),
        ({"optimizer_states": []}, "state of the optimizers (optimizer_states)"),
        ({"optimizer_states": None}, "state of the optimizers (optimizer_states)"),
        ({"global_step": None}, "number of steps (global_step)"),
        ({"lr_schedulers": None}, "state of the schedulers (lr_schedulers)"),
        ({"callbacks": None}, "state of the callbacks (callbacks)"),
    ],
    ids=str,
)
def test_a_checkpoint_with_missing_parts_is_no_start(
    parts: dict[str, Any], missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(2) == 0
    path = the_run().last
    change(path, **parts)
    assert fit(4, last=str(path)) == 1
    assert f"{path} holds no {missing}, so training cannot resume from it" in capsys.readouterr().err


def test_a_longer_run_with_other_settings_is_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(6, "--model.beta=7") == 0
    longer = the_run()
    assert fit(2, last="null") == 0
    (own,) = {run.path for run in RunFolder.all_in(Path("runs/exp"))} - {longer.path}
    capsys.readouterr()
    assert fit(4) == 0
    said = capsys.readouterr().out.splitlines()
    passed_over = said.index(f"passed over {longer.path}, step 6: model.beta=7.0 (now 4.0)")
    assert said.index(f"continuing from {RunFolder(own).last}, step 2") > passed_over
    assert fit(8, "--model.beta=7") == 0
    said = capsys.readouterr().out
    assert f"continuing from {longer.last}, step 6" in said
    assert "passed over" not in said, "nothing is further"


def test_where_no_run_matches_the_nearest_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(4, "--model.beta=7", "--data.test_size=12") == 0
    assert fit(2, "--data.test_size=12", last="null") == 0
    capsys.readouterr()
    assert fit(8) == 1
    captured = capsys.readouterr()
    assert (
        "the checkpoint was written with data.test_size=12 (now 10): a resumed run keeps its settings" in captured.err
    )
    assert "no run in runs/exp has these settings; the nearest is runs/exp/" in captured.out
    assert "passed over" not in captured.out
    assert fit(8, "--allow_changes=true") == 0
    assert "step 2\n" in capsys.readouterr().out, "the model must match whatever is allowed"


def test_a_complete_run_of_another_model_is_another_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(2) == 0
    path = str(the_run().last)
    for last in (path, "last"):
        for other, why in (
            ("TCVAE", "holds a BetaVAE, the configuration names a TCVAE"),
            ("BetaVAE", "model.beta=4.0"),
        ):
            capsys.readouterr()
            assert fit(2, f"--model={other}", "--model.beta=7", last=last) == 1
            captured = capsys.readouterr()
            assert why in captured.err
            assert "complete" not in captured.out
    assert the_run().last.is_file(), "no folder is left behind"


def test_a_name_is_recorded_and_tells_runs_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(2, "--name=first try") == 0
    assert the_run().read_config()["name"] == "first try"
    assert fit(4) == 0
    assert fit(2, "--model.beta=7", last="null") == 0
    capsys.readouterr()
    assert run(["report", "runs", "-o", "report.html"]) == 0
    assert "2 runs)" in capsys.readouterr().out
    page = Path("report.html").read_text()
    assert '"name":"first try"' in page
    assert '"name":"\\u03b2 = 7"' in page
