"""A paper's numbers by one command: what is compared, what is recorded, and what the tables in experiments/ say."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from tests.helpers.paths import ROOT
from tests.helpers.processes import command
from tests.helpers.study import Tiny
from vaezoo.cli.main import run
from vaezoo.study.claims import claims_table
from vaezoo.study.expected import Row, compare, comparison_table, read_expected
from vaezoo.study.file import read_study
from vaezoo.study.findings import StudyFindings
from vaezoo.study.grid import chosen, expand
from vaezoo.study.reproduce import joined, read_record, recorded, run_reproduce

STUDIES = sorted(path.stem for path in (ROOT / "experiments" / "studies").glob("*.yaml"))
UNMEASURED = ("dipvae_celeba", "larvae_isaac3d")  # they need files that are not drawn
FILES = {"MNIST": "MNIST", "FashionMNIST": "FashionMNIST", "CelebA": "celeba", "Isaac3D": "Isaac3D_down128"}
RECORDED = sorted(path.stem for path in (ROOT / "experiments" / "results").glob("*.json"))


def a_run(config: str, seed: int, place: dict[str, Any], **scores: float | str) -> dict[str, Any]:
    measured = {"polar_error": {"polar_error": scores["polar"]}, "mig_20": {"mig_20": scores.get("mig", 0.5)}}
    images = {"source": "render", "scored": 100}
    cost = {"steps": 800, "seconds": 60.0 + 120 * seed}
    return {"config": config, "seed": seed, "place": place, "scores": measured, "images": images, **cost}


RUNS = [
    a_run("wela", 0, {"bins": 2}, polar=4, mig=0.2),
    a_run("wela", 1, {"bins": 2}, polar=8, mig=0.4),
    a_run("wela", 0, {"bins": 3}, polar=100),
    a_run("tc", 0, {}, polar="inf"),
]
WELA = Row(
    "WeLa-VAE", "wela", {"bins": 2}, {"polar_error": "7"}, {"short": {"polar_error": (5, 1), "mig_20": (0.5, 0.1)}}
)
NONE = Row("not run", "none", budgets={"short": {"mig_20": (1, 1)}})
TC = Row("TCVAE", "tc", budgets={"short": {"polar_error": (5, 1)}})


def test_means_over_seeds_are_compared_with_what_is_expected() -> None:
    said, off = compare([WELA, TC, NONE], RUNS, "short")
    assert said == [
        "WeLa-VAE: polar_error 6, expected 5 ± 1",  # at the edge is within
        "WeLa-VAE: mig_20 0.3, expected 0.5 ± 0.1",
        "TCVAE: polar_error inf, expected 5 ± 1",
        "not run: mig_20 no run, expected 1 ± 1",
    ]
    assert off == said[1:]
    assert compare([WELA], RUNS, "full") == ([], [])


def test_a_table_shows_what_was_measured_beside_the_paper() -> None:
    lines = comparison_table([WELA, TC, NONE], RUNS).splitlines()
    assert lines == [
        "|  | seeds | polar_error | best | paper | mig_20 | best | steps | minutes a run | data |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        "| WeLa-VAE | 2 | 6 ± 2.8 | 4 | 7 | 0.3 ± 0.14 | 0.4 | 800 | 1.0 to 3.0 | drawn |",
        "| TCVAE | 1 | inf | inf |  | 0.5 | 0.5 | 800 | 1.0 | drawn |",
    ]
    lines = comparison_table([WELA, TC], RUNS[:1] + RUNS[2:]).splitlines()
    assert lines[0] == "|  | seeds | polar_error | paper | mig_20 | steps | minutes a run | data |"
    assert lines[2] == "| WeLa-VAE | 1 | 4 | 7 | 0.2 | 800 | 1.0 | drawn |"


def test_a_claim_is_tested_over_seeds() -> None:
    """By hand: means 2 and 7, variances 1 and 7, so t = 5 / √(1/3 + 7/3) = 3.06 with 2.56 degrees of freedom."""
    runs = [a_run("wela", i, {"bins": 2}, polar=v) for i, v in enumerate((1, 2, 3))]
    runs += [a_run("tc", i, {}, polar=v) for i, v in enumerate((5, 6, 10))]
    claim = replace(WELA, better={"TCVAE": ["polar_error"]})  # less is better
    *_, line = claims_table([claim, TC], runs).splitlines()
    p = stats.t.sf(5 / (8 / 3) ** 0.5, (8 / 3) ** 2 / ((1 / 3) ** 2 / 2 + (7 / 3) ** 2 / 2))
    assert line == f"| WeLa-VAE > TCVAE | polar_error | 5 | 3.1 | {p:.2g} |"
    assert 0.03 < p < 0.04
    assert "| -5 | -3.1 |" in claims_table([WELA, replace(TC, better={"WeLa-VAE": ["polar_error"]})], runs)
    assert claims_table([WELA, TC], runs) == "", "no claim"
    assert claims_table([claim, TC], runs[:4]) == "", "one seed has no spread"


@pytest.mark.xdist_group("ray")
@pytest.mark.timeout(1500)
def test_a_study_is_run_compared_and_recorded(tiny: Tiny) -> None:
    folder = tiny.path / "experiments"
    (folder / "studies").mkdir(parents=True)
    tiny.write(budgets={"smoke": {"trainer.max_steps": 3}})
    (tiny.path / "study.yaml").rename(folder / "studies" / "tiny.yaml")

    def reproduce(value: float, *options: str) -> tuple[int, str]:
        rows = [{"label": "VAE", "config": "vae", "budgets": {"smoke": {"polar_error": [value, 2000]}}}]
        (folder / "expected.json").write_text(json.dumps({"tiny": rows}))
        return command(["reproduce", "tiny", "--budget=smoke", "--record", *options], tiny.path)

    code, said = reproduce(1000)
    assert code == 0, said
    assert "ok  VAE: polar_error" in said
    record = json.loads((folder / "results" / "tiny-smoke.json").read_text())
    (found,) = record["runs"]
    assert (found["steps"], found["seed"], found["config"], found["place"]) == (3, 0, "vae", {})
    assert found["settings"]["model"]["init_args"]["latent_dim"] == 2
    assert found["settings"]["trainer"]["max_steps"] == 3
    assert found["images"] == {"source": "render", "scored": 100}
    assert 0 < found["scores"]["polar_error"]["polar_error"] < 3000
    assert record["command"] == "vaezoo reproduce tiny --budget smoke"
    assert str(tiny.path) not in json.dumps(record), "a record says nothing of the machine's folders"
    assert found["machine"]["cpus"] > 0
    assert found["versions"]["commit"]
    shutil.rmtree(tiny.path / "runs")
    code, said = reproduce(90000)
    assert "tiny: 0 runs" in said, "what is recorded is not run again"
    assert json.loads((folder / "results" / "tiny-smoke.json").read_text()) == record
    assert code == 1
    assert "1 of 1 means are out of their tolerance: VAE: polar_error" in said.splitlines()[-1]


def test_a_record_grows_and_forgets_what_the_study_no_longer_has(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny.path)
    tiny.write(seeds=[0, 1, 10])
    runs = expand(read_study(Path("study.yaml")))
    file = tiny.path / "record.json"
    assert read_record(file, runs) == []
    made = [{"run": run.name, "seed": run.seed, "identity": run.identity} for run in runs]
    file.write_text(json.dumps({"runs": [made[2], {"run": "vae-s1", "seed": 1, "identity": "of other settings"}, {}]}))
    known = read_record(file, runs)
    assert known == [made[2]]
    assert joined(known, [made[1], made[0] | {"new": True}]) == [made[0] | {"new": True}, made[1], made[2]]
    assert joined([made[0]], [made[0] | {"new": True}]) == [made[0]], "it keeps the commit that it was made with"
    assert [run.name for run in chosen(runs, ["vae-s1", "*0"])] == ["vae-s0", "vae-s1", "vae-s10"]
    with pytest.raises(ValueError, match=r"--only: no run is called 'vae-s2'; there are vae-s0, vae-s1, vae-s10"):
        chosen(runs, ["vae-s2"])


def test_what_others_record_meanwhile_stays(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny.path)
    folder = tiny.path / "experiments"
    (folder / "studies").mkdir(parents=True)
    (folder / "results").mkdir()
    tiny.write(seeds=[0, 1])
    (tiny.path / "study.yaml").rename(folder / "studies" / "tiny.yaml")
    (folder / "expected.json").write_text(json.dumps({"tiny": [{"label": "VAE", "config": "vae", "budgets": {}}]}))
    runs = expand(read_study(folder / "studies" / "tiny.yaml"))
    file = folder / "results" / "tiny-full.json"
    made = [a_run("vae", run.seed, {}, polar=4) | {"run": run.name, "identity": run.identity} for run in runs]
    file.write_text(json.dumps({"runs": made[:1]}))

    def others(_: StudyFindings) -> None:
        file.write_text(json.dumps({"runs": made}))

    run_reproduce(["tiny", "--record", "--only", "vae-s0"], others)
    assert json.loads(file.read_text())["runs"] == made


def test_wrong_uses_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert run(["reproduce", "welavae_tabel1"]) == 1
    assert "did you mean 'welavae_table1'?" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", "welavae_table1", "--record"]) == 1
    assert "run it in the folder that holds experiments/" in capsys.readouterr().err
    Path("experiments").mkdir()
    for content in (
        "{",
        '{"a": [{"label": "x"}]}',
        '{"a": [{"label": "x", "config": "c", "budgets": {"s": {"m": [1, 0]}}}]}',
        '{"a": [{"label": "x", "config": "c", "better": {"y": ["m"]}}]}',
    ):
        Path("experiments", "expected.json").write_text(content)
        with pytest.raises(ValueError, match="is damaged"):
            read_expected(Path("experiments", "expected.json"))


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_is_expected_to_give_something(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    rows, study = (
        read_expected(Path("experiments", "expected.json"))[name],
        read_study(Path(f"experiments/studies/{name}.yaml")),
    )
    for budget in study.budgets:
        runs = [{"config": run.part, "place": run.place} for run in expand(study, budget)]
        for row in rows:
            assert row.runs(runs) or (budget != "full" and budget not in row.budgets), (
                f"{row.label} has no {budget} runs"
            )
    # Nothing is expected of what was never run.
    assert any("smoke" in row.budgets for row in rows) != (name in UNMEASURED)


@pytest.mark.parametrize("name", RECORDED)
def test_the_tables_in_experiments_are_those_of_the_records(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No number in the tables that is not in a recorded run, and no record that expectations contradict."""
    monkeypatch.chdir(ROOT)
    expected = read_expected(Path("experiments", "expected.json"))
    title, _, made = recorded(expected)[name].partition("\n\n")
    readme = Path("experiments", "README.md").read_text()
    assert made in readme, f"the table of {name} is now:\n{made}"
    assert title in readme
    record = json.loads(Path("experiments", "results", f"{name}.json").read_text())
    assert compare(expected[record["study"]], record["runs"], record["budget"])[1] == []


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", STUDIES)
def test_the_smoke_budget_of_every_study_reproduces(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    parts = read_study(ROOT / "experiments" / "studies" / f"{name}.yaml").parts.values()
    for data, folder in FILES.items():
        needed = any(f"class_path: {data}DataModule" in part.config.read_text() for part in parts)
        if needed and not (ROOT / "data" / folder).is_dir():
            pytest.skip(f"needs {data}'s files in data/{folder}")
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    (tmp_path / "data").symlink_to(ROOT / "data")
    args = [sys.executable, "-m", "vaezoo", "reproduce", name, "--budget=smoke"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(args, cwd=tmp_path, text=True, capture_output=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
