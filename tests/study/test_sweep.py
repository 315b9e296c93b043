"""Sweeps, read and turned into commands by W&B's own code."""

from pathlib import Path

import pytest
import yaml

from tests.helpers.paths import ROOT
from vaezoo.cli.main import run


def test_an_agents_command_is_one_that_vaezoo_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = {
        "configs": {"beta": f"{ROOT}/experiments/betavae_3dshapes.yaml"},
        "seeds": [3, 4],
        "grid": {"model.beta": [1, 8], "data.labels": [0.01, None]},
        "overrides": {"trainer.max_steps": 7, "trainer.limit_val_batches": 0.5},
        "budgets": {"short": {"trainer.max_steps": 5, "seeds": [3]}},
    }
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    assert run(["study", f"{tmp_path}/study.yaml", "--budget=short", f"--sweep={tmp_path}/sweep.yaml"]) == 0
    assert f"wandb sweep {tmp_path}/sweep.yaml" in capsys.readouterr().out
    # Two seconds, which every worker would spend.
    from wandb.sdk.launch.sweeps.utils import create_sweep_command, create_sweep_command_args, load_sweep_config

    config = load_sweep_config(f"{tmp_path}/sweep.yaml")
    assert config is not None
    assert config["method"] == "grid"
    assert config["metric"] == {"name": "val/loss", "goal": "minimize"}
    assert config["parameters"] == {
        "model.beta": {"values": [1, 8]},
        "data.labels": {"values": [0.01, "null"]},
        "seed_everything": {"values": [3]},
    }
    chosen = {"args": {key: {"value": entry["values"][-1]} for key, entry in config["parameters"].items()}}
    arguments = create_sweep_command_args(chosen)["args"]
    env, program, *command = create_sweep_command(config["command"])
    assert (env, program, command[-1]) == ("${env}", "vaezoo", "${args}")
    with pytest.raises(SystemExit) as stop:
        run([*command[:-1], *arguments, "--print_config"])
    assert stop.value.code == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert printed["seed_everything"] == 3
    assert printed["model"]["init_args"]["beta"] == 8
    assert printed["data"]["init_args"]["labels"] is None
    assert printed["trainer"]["max_steps"] == 5
    assert printed["trainer"]["logger"]["class_path"].endswith("WandbLogger")


def test_each_configuration_has_a_sweep_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert run(["study", "experiments/studies/welavae_table1.yaml", f"--sweep={tmp_path}/sweep.yaml"]) == 0
    tc, wela = (yaml.safe_load((tmp_path / f"sweep_{name}.yaml").read_text()) for name in ("tcvae", "welavae"))
    assert tc["parameters"] == {"seed_everything": {"values": list(range(50))}}
    assert wela["parameters"]["data.bins"] == {"values": [2, 3, 4, 5, 6, 7, 8]}


def test_options_set_together_are_beyond_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert run(["study", "experiments/studies/dipvae_tradeoff.yaml", f"--sweep={tmp_path}/sweep.yaml"]) == 1
    assert "configs.dipvae1: the points of 'lambda_od' are sets of options" in capsys.readouterr().err
