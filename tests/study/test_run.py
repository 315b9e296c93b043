"""Studies on a real Ray: what is done is not done again, what fails is told, what is killed goes on."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

import vaezoo
from tests.helpers.study import Tiny, alive, listening, parent, training, wait_for
from vaezoo.cli.main import run

pytest.importorskip("ray")
pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.timeout(1500)]


def test_a_study_runs_once_and_tells_what_failed(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tiny.path)
    tiny.write(configs={"vae": "tiny.yaml", "wrong": {"config": "tiny.yaml", "overrides": {"model.beta": "much"}}})
    study, heard = tiny.start(), set[str]()
    while study.poll() is None:
        heard |= listening(study.pid)
        time.sleep(0.2)
    said, _ = study.communicate()
    assert study.returncode == 1, said
    # 127.0.0.1, also as an IPv6 address, in the order of this machine's bytes.
    assert {address[-8:] for address in heard} == {"0100007F"}, "Ray listens to this machine alone"
    assert "a run that makes no progress for 60 minutes is tried again" in said
    assert "vaezoo: error: 1 of 2 runs failed: wrong-s0" in said
    assert "expected float, got 'much'" in said
    assert len(tiny.commands("wrong-s0")) == 1, "a wrong command is not tried again"
    result = json.loads((tiny.folder("vae-s0") / "result.json").read_text())
    assert (result["steps"], result["attempts"], result["stopped"]) == (5, 1, False)
    assert result["scores"]["polar_error"]["polar_error"] > 0
    (checkpoint,) = tiny.checkpoints("vae-s0")
    assert tiny.path / "out" / result["checkpoint"] == checkpoint
    assert vaezoo.load(checkpoint).step == 5
    assert "polar_error (lower is better)" in (tiny.path / "out" / "summary.md").read_text()
    tiny.write()
    monkeypatch.setattr("ray.init", None)  # nothing to do needs no Ray
    before = (tiny.folder("vae-s0") / "result.json").stat().st_mtime_ns
    assert run(["study", "study.yaml", "--output=out"]) == 0
    assert "1 runs, 1 of them done already" in capsys.readouterr().out
    assert (tiny.folder("vae-s0") / "result.json").stat().st_mtime_ns == before
    assert len(tiny.commands("vae-s0")) == 2, "one fit and one evaluate"


def test_without_ray_an_error_names_the_extra(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tiny.path)
    tiny.write()
    for name in ("ray", "vaezoo.study.runner"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    assert run(["study", "study.yaml"]) == 1
    remedy = "pip install 'vaezoo[study]'"
    assert capsys.readouterr().err == f"vaezoo: error: studies need more packages: {remedy}\n"
    assert run(["study", "study.yaml", "--dry_run"]) == 0
    said = capsys.readouterr().out
    assert "vae-s0  0     to run" in said
    assert "-m vaezoo fit --config=tiny.yaml" in said
    assert "-m vaezoo evaluate --metrics polar_error --images 100 --resamples 0 --ckpt_path" in said


@pytest.mark.slow
def test_one_more_seed_is_one_more_run_and_other_scores_no_training(tiny: Tiny) -> None:
    tiny.write()
    assert tiny.run()[0] == 0
    tiny.write(seeds=[0, 1], evaluate={"metrics": ["kl"], "images": 100, "resamples": 0})
    code, said = tiny.run()
    assert code == 0, said
    first, second = tiny.commands("vae-s0"), tiny.commands("vae-s1")
    assert [line.split()[2] for line in first] == ["fit", "evaluate", "evaluate"]
    assert [line.split()[2] for line in second] == ["fit", "evaluate"]
    tiny.write(seeds=[0, 1, 2])
    assert tiny.run()[0] == 0
    assert len(tiny.commands("vae-s1")) == 3
    assert len(tiny.commands("vae-s2")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["run", "worker", "driver", "interrupt"])
def test_what_is_killed_goes_on_from_its_checkpoint(victim: str, tiny: Tiny) -> None:
    tiny.write(grid={"trainer.max_steps": [5, 600] if victim == "driver" else [600]})
    study = tiny.start("--cpus_per_run=2")  # one after the other, on two cores or more
    wait_for(lambda: tiny.checkpoints("vae-max_steps=600-s0") or study.poll() is not None)
    assert study.poll() is None, study.stdout and study.stdout.read()
    folder = tiny.folder("vae-max_steps=600-s0")
    (process,) = training(folder)
    target = {"run": process, "worker": parent(process)}.get(victim, study.pid)
    os.kill(target, signal.SIGINT if victim == "interrupt" else signal.SIGKILL)
    done = {file: file.stat().st_mtime_ns for file in tiny.path.glob("out/runs/*/result.json")}
    assert len(done) == (victim == "driver")
    if victim in ("driver", "interrupt"):
        study.communicate()
        assert study.returncode == {"driver": -signal.SIGKILL, "interrupt": 130}[victim]
        wait_for(lambda: not training(folder), 30)  # nobody is left behind
        study = tiny.start()
    said, _ = study.communicate()
    assert study.returncode == 0, said
    assert not alive(process)
    assert all(file.stat().st_mtime_ns == before for file, before in done.items())
    fits = [line for line in tiny.commands("vae-max_steps=600-s0") if " fit " in line]
    first, second = tiny.checkpoints("vae-max_steps=600-s0")
    assert len(fits) == 2
    assert f"continuing from {first}" in (folder / "log.txt").read_text()
    start = int((second.parent.parent / "metrics.csv").read_text().splitlines()[1].split(",")[step_column(second)])
    assert start >= 50, "it did not start from scratch"
    assert vaezoo.load(second).step == 600
    result = json.loads((tiny.folder("vae-max_steps=600-s0") / "result.json").read_text())
    assert (result["steps"], result["attempts"]) == (600, 2)


def step_column(checkpoint: Path) -> int:
    return (checkpoint.parent.parent / "metrics.csv").read_text().splitlines()[0].split(",").index("step")


@pytest.mark.slow
def test_a_run_that_keeps_failing_is_given_up_and_the_others_go_on(tiny: Tiny) -> None:
    missing = {"config": "tiny.yaml", "overrides": {"data": "ChairsDataModule", "data.data_dir": "none"}}
    tiny.write(configs={"missing": missing, "vae": "tiny.yaml"})
    code, said = tiny.run("--retries=1")
    assert code == 1
    assert "1 of 2 runs failed: missing-s0" in said
    assert len(tiny.commands("missing-s0")) == 2
    failed = json.loads((tiny.folder("missing-s0") / "failed.json").read_text())
    assert failed["reason"] == "vaezoo fit ended with exit code 1"
    assert "none" in failed["log"]
    assert (tiny.folder("vae-s0") / "result.json").is_file()


@pytest.mark.slow
def test_asha_stops_a_run_which_is_scored_all_the_same(tiny: Tiny) -> None:
    asha = {"class": "ASHA", "metric": "train/loss", "mode": "min", "grace_period": 1, "reduction_factor": 2}
    vae = {"config": "tiny.yaml", "overrides": {"trainer.max_steps": 100}}
    heavy = {"config": "tiny.yaml", "overrides": {"trainer.max_steps": 20000, "model.beta": 1e5}}
    tiny.write(configs={"vae": vae, "heavy": heavy}, scheduler=asha)
    code, said = tiny.run("--cpus_per_run=2")
    assert code == 0, said
    results = {name: json.loads((tiny.folder(name) / "result.json").read_text()) for name in ("vae-s0", "heavy-s0")}
    assert (results["vae-s0"]["steps"], results["vae-s0"]["stopped"]) == (100, False)
    assert results["heavy-s0"]["stopped"]
    assert 0 < results["heavy-s0"]["steps"] < 20000
    assert "polar_error" in results["heavy-s0"]["scores"]
