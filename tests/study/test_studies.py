"""Every study in experiments/studies expands to commands that the real command line takes."""

from pathlib import Path

import pytest
import yaml
from lightning.pytorch.cli import ArgsType, LightningArgumentParser

from datamodules import ImageDataModule
from tests.helpers.paths import ROOT
from vaezoo.cli.main import COMMANDS, ZooCLI
from vaezoo.evaluation.command import _parser as evaluate_parser
from vaezoo.models import VAE
from vaezoo.study.file import read_study
from vaezoo.study.grid import Run, expand

pytestmark = pytest.mark.xdist_group("studies")  # one worker makes what all of them read

STUDIES = sorted((ROOT / "experiments" / "studies").glob("*.yaml"))
RUNS = {  # full budgets, from the papers
    "larvae_rates": 4 * 4 * 2 * 6,
    "partedvae_labels": (1 + 5 + 1 + 4) * 5,
    "dipvae_tradeoff": (13 + 8 + 8) * 3,
    "welavae_table1": (1 + 7) * 50,
    "jointvae_seeds": 10,
    "jointvae_tuned": 10,
    "larvae_tau": 6 * 4 * 6,
    "partedvae_labels_only": 3,
    "partedvae_mnist": 3,
}


class ParsedError(Exception):
    """Carries the parser out of the command line before anything is made."""


class DryCLI(ZooCLI):
    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        raise ParsedError(parser)


@pytest.fixture(scope="module")
def parser() -> LightningArgumentParser:
    quiet = {"exit_on_error": False}
    options = {**quiet, **dict.fromkeys(COMMANDS, quiet)}
    with pytest.raises(ParsedError) as caught:
        DryCLI(VAE, ImageDataModule, subclass_mode_model=True, subclass_mode_data=True, parser_kwargs=options, args=[])
    found: LightningArgumentParser = caught.value.args[0]
    return found


def distinct(runs: list[Run]) -> list[Run]:
    """One run for each place in the grid: seeds parse alike."""
    return list({(run.part, str(run.place)): run for run in runs}.values())


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_command_of_a_study_parses(
    path: Path, parser: LightningArgumentParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    study = read_study(path)
    assert study.name == path.stem
    assert path.read_text().startswith("# ")
    assert set(study.budgets) - {"long"} == {"full", "short", "smoke"}
    runs = expand(study)
    assert len(runs) == RUNS[path.stem]
    places = [*distinct(runs), *(run for name in study.budgets for run in expand(study, name)[:1])]
    for run in places:
        config = parser.parse_args(run.fit(Path("runs")))["fit"]
        assert config.seed_everything == run.seed
        section = config.as_dict()
        for key, value in run.overrides.items():
            first, *rest = key.split(".")
            found = section[first].get("init_args", section[first])[rest[0]]
            if isinstance(found, dict) and "class_path" in found:
                found = found["class_path"].rpartition(".")[2]
            assert found == value, key
        assert evaluate_parser().parse_args([*run.scores(), "x.ckpt"][1:]).metrics == study.evaluate["metrics"]


def test_smoke_runs_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for path in STUDIES:
        for run in expand(read_study(path), "smoke"):
            assert run.overrides["trainer.max_steps"] <= 8, run.name
            assert run.seed == 0


def test_coupled_weights_of_dip_vae(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kumar et al., 2018, Sec. 4: the diagonal's weight is 10 times the other in variant I, and equal in II."""
    monkeypatch.chdir(ROOT)
    for run in expand(read_study(ROOT / "experiments" / "studies" / "dipvae_tradeoff.yaml")):
        if run.part != "betavae":
            factor = {"dipvae1": 10, "dipvae2": 1}[run.part]
            assert run.overrides["model.lambda_d"] == factor * run.overrides["model.lambda_od"]
            assert str(run.overrides["model.lambda_od"]) == run.place["lambda_od"]
            assert yaml.safe_load(run.config.read_text())["model"]["init_args"]["variant"] == "i" * (1 + (factor == 1))
