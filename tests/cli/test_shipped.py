"""The experiments that come with the package: found by name, listed, copied, and part of what is installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from datamodules import CelebAClassesDataModule, ChairsDataModule, MNISTDataModule, Shapes3DDataModule
from tests.helpers.harness import attempt
from tests.helpers.paths import ROOT
from vaezoo.cli.experiments import _needs_files, name_to_path, summary
from vaezoo.cli.main import run
from vaezoo.runs.experiments import SHIPPED, find_experiment

EXPERIMENTS = sorted(path.stem for path in (ROOT / "experiments").glob("*.yaml"))
STUDIES = sorted(path.stem for path in (ROOT / "experiments" / "studies").glob("*.yaml"))


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_name_is_a_configuration_in_any_folder(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        run(["fit", "--config", "vae_3dshapes", "--config=tcvae_3dshapes", "--model.beta=7", "--print_config"])
    model = yaml.safe_load(capsys.readouterr().out)["model"]
    assert model["class_path"] == "vaezoo.TCVAE"
    assert (model["init_args"]["beta"], model["init_args"]["latent_dim"]) == (7.0, 11)


def test_names_and_paths_of_configurations() -> None:
    shipped = str(ROOT / "experiments" / "vae_3dshapes.yaml")
    assert name_to_path(["fit", "--config=vae_3dshapes", "-c", "vae_3dshapes"]) == [
        *("fit", f"--config={shipped}", "-c", shipped)
    ]
    assert find_experiment("experiments/vae_3dshapes.yaml") == shipped
    inline = '{"model": "http://x"}'
    others = ["fit", "--config", "elsewhere/vae_3dshapes.yaml", "--config", inline, "--model", "vae_3dshapes", "-c"]
    assert name_to_path(others) == others


def test_the_current_folder_wins() -> None:
    Path("experiments").mkdir()
    Path("vae_3dshapes").touch()
    Path("experiments", "vae_3dshapes.yaml").touch()
    for own in ("vae_3dshapes", "experiments/vae_3dshapes.yaml"):
        assert find_experiment(own) == own


def test_nothing_but_experiments_is_shipped() -> None:
    for path in ("experiments/../pyproject.toml", "vaezoo/__init__.py", "experiments/studies/larvae_tau.yaml"):
        assert find_experiment(path) == path


def test_a_study_is_found_by_name_with_its_configurations(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["study", "welavae_table1", "--dry_run", "--budget=smoke"]) == 0
    assert f"--config={ROOT}/experiments/welavae_blobs.yaml" in capsys.readouterr().out


def test_records_are_printed_from_any_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce"]) == 0
    assert "vaezoo reproduce welavae_table1 --budget short" in capsys.readouterr().out


def test_the_list_has_a_line_for_every_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["experiments"]) == 0
    experiments, studies = (part.splitlines() for part in capsys.readouterr().out.split("\n\n"))
    assert [line.split()[0] for line in experiments[1:]] == EXPERIMENTS
    assert [line.split()[0] for line in studies[1:]] == STUDIES
    (line,) = (line for line in experiments if line.startswith("larvae_3dshapes "))
    assert line.split(maxsplit=4) == [
        *("larvae_3dshapes", "LaRVAE", "Shapes3D", "no"),
        "LaRVAE over β-TCVAE on 3DShapes with 1 % of the 480,000 labels (Nie et al., 2020, Fig. 2, 4 and E.3)",
    ]


def test_which_data_needs_files() -> None:
    classes = (Shapes3DDataModule, MNISTDataModule, CelebAClassesDataModule, ChairsDataModule)
    assert [_needs_files(data) for data in classes] == ["no", "download", "download", "yes"]


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("# One (A et al., 2020, Fig. E.1, App. A).\n# Two.", "One (A et al., 2020, Fig. E.1, App. A)"),
        (
            "# One that B et al.\n# (2018, Sec. 5) wrote at 88.7 %. β is 4.",
            "One that B et al. (2018, Sec. 5) wrote at 88.7 %",
        ),
        ("# One", "One"),
    ],
)
def test_the_first_sentence_of_a_header(header: str, sentence: str) -> None:
    Path("x.yaml").write_text(f"{header}\nmodel: {{}}  # not this\n")
    assert summary(Path("x.yaml")) == sentence


def test_a_copy_is_the_file_and_never_overwrites() -> None:
    assert run(["experiments", "copy", "larvae_3dshapes", "."]) == 0
    copied = Path("larvae_3dshapes.yaml")
    assert copied.read_bytes() == (ROOT / "experiments" / copied).read_bytes()
    copied.write_text("mine")
    assert "already exists" in attempt(["experiments", "copy", "larvae_3dshapes"])[1]
    assert copied.read_text() == "mine"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["fit", "--config=larvae_3dshape"],
            "no experiment is called 'larvae_3dshape'; did you mean 'larvae_3dshapes'?",
        ),
        (["study", "larvae_rate"], "no study is called 'larvae_rate'; did you mean 'larvae_rates'?"),
        (["experiments", "copy", "larvae"], "no experiment is called 'larvae'"),
        (["experiments", "copy", "larvae_3dshapes", "nowhere"], "nowhere is no folder"),
        (["experiments", "copi"], "did you mean 'copy'?"),
        (["experiments", "copy"], "vaezoo experiments needs NAME, for example: vaezoo experiments copy"),
    ],
)
def test_wrong_names_are_one_line(args: list[str], message: str) -> None:
    code, line = attempt(args)
    assert code in (1, 2)
    assert message in line


def test_an_installed_package_brings_them(tmp_path: Path) -> None:
    """What goes into a wheel, without its archive; torch is not loaded."""
    library = tmp_path / "library"
    build = ["setup.py", "-q", "egg_info", f"--egg-base={tmp_path}", "build_py", f"--build-lib={library}"]
    subprocess.run([sys.executable, *build], cwd=ROOT, check=True, capture_output=True)
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); from vaezoo.runs import experiments as e; "
        "found = [e.find_experiment('larvae_3dshapes'), e.find_experiment('larvae_tau', 'studies')]; "
        "assert 'torch' not in sys.modules; print(json.dumps([str(e.SHIPPED), *found]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(library)], cwd=tmp_path, check=True, capture_output=True)
    folder, config, study = map(Path, json.loads(done.stdout))
    assert folder == library / "vaezoo" / "experiments"
    assert sorted(path.stem for path in folder.glob("*.yaml")) == EXPERIMENTS
    assert yaml.safe_load(config.read_text())["model"]["class_path"] == "LaRVAE"
    assert study.parent == folder / "studies"
    assert (folder / "expected.json").is_file()
    assert len(list((folder / "results").iterdir())) == len(list((SHIPPED / "results").iterdir()))
    models, own = library / "vaezoo" / "pretrained_models", ROOT / "vaezoo" / "pretrained_models"
    assert files_in(models) == files_in(own)


def files_in(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
