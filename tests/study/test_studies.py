"""Every study in experiments/studies expands to commands that the real command line takes."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helpers.parser import fit_parser
from tests.helpers.paths import ROOT
from vaezoo.evaluation.command import _parser as evaluate_parser
from vaezoo.study.file import read_study
from vaezoo.study.grid import Run, expand

pytestmark = pytest.mark.xdist_group("studies")  # one worker makes what all of them read

STUDIES = sorted((ROOT / "experiments" / "studies").glob("*.yaml"))
RUNS = {  # full budgets, from the papers
    "larvae_rates": 4 * 4 * 2 * 6,
    "partedvae_labels": (1 + 5 + 1 + 4) * 5,
    "partedvae_short": 7 * 3,
    "dipvae_tradeoff": (13 + 8 + 8) * 3,
    "welavae_table1": (1 + 7) * 50,
    "welavae_narrow": (1 + 2 + 1 + 1) * 10,
    "baselines": 5 * 2 * 5,
    "jointvae_seeds": 10,
    "jointvae_tuned": 10,
    "jointvae_fashion": 2 * 2,
    "larvae_tau": 6 * 4 * 6,
    "larvae_claim": 2 * (5 + 3 + 3 + 3),
    "larvae_open": (1 + 1 + 3 * 2 + 4 * 2) * 3,
    "larvae_betavae": 2 * 4 * 2 * 6,
    "larvae_isaac3d": 3 * 4 * 2 * 6,
    "larvae_fig3a": 2 * 6 * 6,
    "larvae_fig3b": 2 * 5 * 6,
    "dipvae_celeba": (12 + 8 + 9) * 3,
    "jointvae_failures": (4 + 3 + 5) * 3,
    "partedvae_labels_only": 3,
    "partedvae_mnist": 3,
}


def alike(runs: Iterable[Run]) -> Iterator[list[Run]]:
    """Runs of one configuration that differ in the numbers of the same options alone."""
    groups = dict[tuple[Any, ...], list[Run]]()
    for run in runs:
        words = (key if isinstance(value, (int, float)) else (key, str(value)) for key, value in run.overrides.items())
        groups.setdefault((run.config, *words), []).append(run)
    yield from groups.values()


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_is_the_grid_of_its_paper(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    study = read_study(path)
    assert study.name == path.stem
    assert path.read_text().startswith("# ")
    assert set(study.budgets) - {"long"} == {"full", "short", "smoke"}
    assert len(expand(study)) == RUNS[path.stem]


def test_every_command_of_every_study_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that are alike are parsed as one command, where each option is checked and the last of its values counts."""
    monkeypatch.chdir(ROOT)
    studies = [read_study(path) for path in STUDIES]
    runs = [run for study in studies for budget in study.budgets for run in expand(study, budget)]
    for first, *others in alike(runs):
        command, file, *args = first.fit(Path("runs"))
        assert command == "fit"
        more = dict.fromkeys(arg for run in others for arg in run.fit(Path("runs"))[2:] if arg not in args)
        config = fit_parser().parse_args([file, *more, *args]).as_dict()
        assert config["seed_everything"] == first.seed
        for key, value in first.overrides.items():
            assert option(config, key) == value, f"{first.name}: {key}"
    scores, parser = {" ".join(run.scores()): run for run in runs}, evaluate_parser()
    for run in scores.values():
        assert parser.parse_args([*run.scores(), "x.ckpt"][1:]).metrics == run.evaluate["metrics"], run.name


def option(config: Any, key: str) -> Any:
    """What `--key` has set; a class by its name, a tuple as the list that it was written as."""
    for name in key.split("."):
        config = config.get("init_args", config)[name]
    if isinstance(config, tuple):
        return list(config)
    return config["class_path"].rpartition(".")[2] if isinstance(config, dict) and "class_path" in config else config


def test_smoke_runs_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for path in STUDIES:
        for run in expand(read_study(path), "smoke"):
            assert run.overrides["trainer.max_steps"] <= 8, run.name
            assert run.seed == 0


COUPLED: dict[str, dict[str, float]] = {  # Kumar et al., 2018, Sec. 4: λd / λod of variants I and II
    "dipvae_tradeoff": {"dipvae1": 10, "dipvae2": 1},
    "dipvae_celeba": {"dipvae1": 50, "dipvae2": 0.5},
}


@pytest.mark.parametrize("name", COUPLED)
def test_coupled_weights_of_dip_vae(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for run in expand(read_study(ROOT / "experiments" / "studies" / f"{name}.yaml")):
        if run.part != "betavae":
            assert run.overrides["model.lambda_d"] == COUPLED[name][run.part] * run.overrides["model.lambda_od"]
            assert str(run.overrides["model.lambda_od"]) == run.place["lambda_od"]
            variant = yaml.safe_load(run.config.read_text())["model"]["init_args"]["variant"]
            assert variant == {"dipvae1": "i", "dipvae2": "ii"}[run.part]


IMAGES = {"3dshapes": 480_000, "dsprites": 737_280, "isaac3d": 737_280}


@pytest.mark.parametrize("name", [path.stem for path in STUDIES if path.stem.startswith("larvae")])
def test_label_rates_count_all_labels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nie et al., 2020, Sec. 5.1: η of all ground-truth labels, 1 % of the 480,000 of 3DShapes being 4,800."""
    monkeypatch.chdir(ROOT)
    for run in expand(read_study(ROOT / "experiments" / "studies" / f"{name}.yaml")):
        total = IMAGES[run.part.split("_")[1]]
        given = run.overrides.get("data.labels", run.content["data"]["init_args"]["labels"])
        assert given == round(float(run.place.get("labels", 0.01)) * total), run.name


def test_a_configuration_may_have_scores_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Label accuracies are WeLa-VAE's alone; all 102,400 images are scored, but for a budget that says otherwise."""
    monkeypatch.chdir(ROOT)
    study = read_study(ROOT / "experiments" / "studies" / "welavae_table1.yaml")
    for budget, images in (("full", 102_400), ("smoke", 200)):
        asked = {run.part: run.evaluate for run in expand(study, budget)}
        assert asked["tcvae"]["metrics"] == ["polar_error", "cartesian_error"]
        assert asked["welavae"]["metrics"] == ["polar_error", "cartesian_error", "label_accuracy"]
        assert all(evaluate["images"] == images for evaluate in asked.values())
