"""What a study's file may say, and what it is told when it is wrong."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from vaezoo.cli.main import run
from vaezoo.study.file import read_study
from vaezoo.study.grid import expand


@pytest.fixture(autouse=True)
def _config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text("model: {class_path: BetaVAE}\n")
    Path("b.yaml").write_text("model: {class_path: VAE}\n")


def study(**content: Any) -> Path:
    Path("study.yaml").write_text(
        yaml.safe_dump({"configs": {"a": "a.yaml"}, "seeds": [0], **content}, sort_keys=False)
    )
    return Path("study.yaml")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "key": ({"seed": [0]}, "unknown key 'seed'; did you mean 'seeds'?"),
    "no configs": ({"configs": {}}, "names no configuration"),
    "no file": ({"configs": {"a": "c.yaml"}}, "configs.a: no file 'c.yaml'"),
    "part": (
        {"configs": {"a": {"config": "a.yaml", "gird": {}}}},
        "configs.a: unknown key 'gird'; did you mean 'grid'?",
    ),
    "no seeds": ({"seeds": []}, "no seeds for a"),
    "seeds": ({"seeds": ["x"]}, "seeds: expected a list of whole numbers"),
    "same seed": ({"seeds": [1, 1]}, "a seed is there twice"),
    "option": ({"overrides": {"max_steps": 3}}, "'max_steps' is no option of model, data, trainer"),
    "axis": ({"grid": {"model.beta": 3}}, "grid.model.beta: expected a list of values"),
    "empty axis": ({"grid": {"model.beta": []}}, "grid.model.beta: expected a list of values"),
    "budget": ({"budgets": {"short": {"max_steps": 3}}}, "budgets.short: 'max_steps' is no option"),
    "only": ({"budgets": {"short": {"only": "a"}}}, "budgets.short.only: expected a list of names"),
    "metric": ({"evaluate": {"metrics": ["mig"]}}, "no metric is called 'mig'"),
    "metric's argument": (
        {"evaluate": {"metrics": ["sap_dip(bins=3)"]}},
        "study.yaml: sap_dip has no argument 'bins'; it takes categorical, threshold",
    ),
    "resources": ({"resources": {"cpu": 1}}, "resources: unknown key 'cpu'; did you mean 'cpus'?"),
    "amount": ({"resources": {"cpus": "many"}}, "resources.cpus: expected a number"),
    "scheduler": ({"scheduler": {"class": "ASHA"}}, "scheduler: needs class, metric and mode"),
    "class": (
        {"scheduler": {"class": "PBT", "metric": "m", "mode": "min"}},
        "'PBT' is none of ASHA, MedianStoppingRule",
    ),
    "mode": ({"scheduler": {"class": "ASHA", "metric": "m", "mode": "low"}}, "expected min or max, got 'low'"),
    "rows": ({"summary": {"rows": ["labels"]}}, "summary.rows: no axis is called 'labels'"),
    "nothing": ({"resources": {"cpus": 0}}, "resources.cpus: expected a number above 0"),
    "statistics": ({"summary": {"statistics": ["median"]}}, "summary.statistics: unknown key 'median'"),
    "axis of a fact": ({"grid": {"steps": {"few": {"trainer.max_steps": 1}}}}, "results have a column 'steps' already"),
    "axis of a score": ({"grid": {"kl": {"low": {"model.beta": 1}}}}, "results have a column 'kl' already"),
    "large seed": ({"seeds": [2**32]}, "seeds: 4294967296 is too large, the largest is 4294967295"),
    "twice": ({"grid": {"model.name": ["x y", "x/y"]}}, "two runs are called 'a-name=x_y-s0'"),
    "not a study": ({"configs": [1]}, "configs: expected keys with values"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_study_is_one_line(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    content, message = WRONG[wrong]
    assert run(["study", str(study(**content)), "--dry_run"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("vaezoo: error: study.yaml: ") or "study: " in line
    assert message in line


def test_a_study_that_is_not_there_or_no_yaml() -> None:
    with pytest.raises(FileNotFoundError, match="no study at none"):
        read_study(Path("none"))
    Path("broken.yaml").write_text("configs: [")
    with pytest.raises(ValueError, match="is not valid YAML"):
        read_study(Path("broken.yaml"))
    with pytest.raises(ValueError, match="no budget is called 'tiny': study has full, short"):
        expand(read_study(study(budgets={"short": {}})), "tiny")


def test_the_grid_is_a_product_of_configurations_points_and_seeds() -> None:
    together = {"weak": {"model.x": 1, "model.y": 10}, "strong": {"model.x": 2, "model.y": 20}}
    parts = {
        "a": {"config": "a.yaml", "grid": {"strength": together}, "overrides": {"trainer.max_epochs": 7}},
        "b": {"config": "b.yaml", "seeds": [5]},
    }
    runs = expand(
        read_study(
            study(
                configs=parts,
                seeds=2,
                grid={"data.labels": [0.01, 10]},
                overrides={"trainer.max_epochs": 1, "trainer.max_steps": 9},
                budgets={"short": {"trainer.max_steps": 3, "seeds": [4], "evaluate": {"images": 5}}},
                evaluate={"images": 9, "metrics": ["kl", "mig_20"]},
            )
        ),
        "full",
    )
    assert [run.name for run in runs] == [
        *(f"a-labels={n}-strength={s}-s{seed}" for n in ("0.01", "10") for s in together for seed in (0, 1)),
        *("b-labels=0.01-s5", "b-labels=10-s5"),
    ]
    assert runs[3].place == {"labels": 0.01, "strength": "strong"}
    shared = {"trainer.max_steps": 9, "data.labels": 0.01}
    assert runs[3].overrides == {"trainer.max_epochs": 7, "model.x": 2, "model.y": 20, **shared}
    assert runs[3].scores() == ["evaluate", "--images", "9", "--metrics", "kl", "mig_20", "--ckpt_path"]
    short = expand(read_study(Path("study.yaml")), "short")
    assert {run.seed for run in short} == {4}
    assert short[0].overrides["trainer.max_steps"] == 3
    assert short[0].evaluate == {"images": 5, "metrics": ["kl", "mig_20"]}


def test_axes_never_take_the_name_of_another_column() -> None:
    """An axis that is named after an option takes the whole of it where its last word means something else."""
    options = ["model.steps", "model.seed", "model.kl", "model.mig_20_0", "model.beta", "data.beta", "model.tau"]
    (run, *_) = expand(read_study(study(grid={option: [1] for option in options})))
    assert run.place == {**dict.fromkeys(options[:-1], 1), "tau": 1}
    assert run.name == "a-steps=1-seed=1-kl=1-mig_20_0=1-beta=1-beta=1-tau=1-s0", "folders are called as they were"


def test_metrics_of_a_study_take_arguments() -> None:
    metrics = ["sap_dip(threshold=0.01)", "beta_vae_dip(pairs=5, points=9)"]
    (found,) = expand(read_study(study(evaluate={"metrics": metrics})))
    assert found.scores() == ["evaluate", "--metrics", *metrics, "--ckpt_path"]


def test_a_budget_may_run_some_places_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    budgets = {"some": {"only": ["a-x=1*", "b"]}, "none": {"only": ["b", "a-x=3"]}}
    parts = {"a": {"config": "a.yaml", "grid": {"model.x": [1, 2, 10]}}, "b": "b.yaml"}
    path = study(configs=parts, seeds=2, budgets=budgets)
    assert [run.name for run in expand(read_study(path), "some")] == [
        *("a-x=1-s0", "a-x=1-s1", "a-x=10-s0", "a-x=10-s1", "b-s0", "b-s1")
    ]
    with pytest.raises(ValueError, match=r"budgets\.none\.only: no run fits 'a-x=3'"):
        expand(read_study(path), "none")
    assert run(["study", str(path), "--budget=some", f"--sweep={tmp_path}/sweep.yaml"]) == 1
    assert "runs only part of the grid" in capsys.readouterr().err


def test_the_command_of_a_run() -> None:
    (found,) = expand(read_study(study(overrides={"model.lr": 1e-3, "trainer.callbacks": None, "data.x": ["p", 2]})))
    assert found.fit(Path("out/runs")) == [
        "fit",
        "--config=a.yaml",
        "--model.lr=0.001",
        "--trainer.callbacks=null",
        '--data.x=["p", 2]',
        "--trainer.enable_progress_bar=false",
        "--runs_dir=out/runs",
        f"--experiment=a-s0-{found.training[:8]}",
        "--seed_everything=0",
    ]


def test_identity_is_what_a_run_depends_on() -> None:
    def one(**content: Any) -> tuple[str, str]:
        (found,) = expand(read_study(study(**content)))
        return found.training, found.identity

    base = one()
    Path("a.yaml").write_text("# a comment\nmodel:\n  class_path: BetaVAE\n")
    assert one(name="other", configs={"z": "a.yaml"}, budgets={"short": {}}, resources={"cpus": 2}) == base
    assert one(overrides={"compile": True}) == base, "a compiled run differs by rounding alone"
    scored = one(evaluate={"images": 3})
    assert scored[0] == base[0], "other scores need no other training"
    assert scored[1] != base[1]
    others = [one(seeds=[1]), one(overrides={"model.lr": 1}), one(configs={"a": "b.yaml"})]
    assert len({base, scored, *others}) == 5
    assert all(other[0] != base[0] for other in others)


def test_files_that_a_configuration_names_are_part_of_its_identity(tmp_path: Path) -> None:
    def one(**content: Any) -> str:
        (found,) = expand(read_study(study(configs={"c": "configs/c.yaml"}, **content)))
        return found.training

    Path("configs").mkdir()
    Path("configs/c.yaml").write_text("model: model.yaml\ndata: {init_args: {models_file: list.txt}}\n")
    alone = one()
    Path("configs/model.yaml").write_text("{class_path: LaRVAE, init_args: {network: network.yaml}}\n")
    Path("configs/network.yaml").write_text("{class_path: DenseNetwork, more: model.yaml}\n")
    Path("list.txt").write_text("one\n")
    seen = [alone, one()]
    Path("configs/network.yaml").write_text("# a comment\nclass_path: DenseNetwork\nmore: model.yaml\n")
    assert one() == seen[-1], "comments do not count"
    for file, text in (("configs/network.yaml", "{class_path: Other}\n"), ("list.txt", "two\n")):
        Path(file).write_text(text)
        seen.append(one())
    for text in ("beta: 1\n", "beta: 2\n"):
        Path("options.yaml").write_text(text)
        seen.append(one(overrides={"model.init_args": "options.yaml"}))
    assert len(set(seen)) == len(seen)


def test_a_configuration_may_include_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the command line reads it: names start at the folder of the file that names them."""
    Path("configs").mkdir()
    Path("configs/c.yaml").write_text("model: model.yaml\ndata: BlobsDataModule\n")
    Path("configs/model.yaml").write_text("{class_path: BetaVAE, init_args: {beta: 7.5}}\n")
    with pytest.raises(SystemExit):
        run(["fit", "--config=configs/c.yaml", "--print_config"])
    assert "beta: 7.5" in capsys.readouterr().out
