"""`vaezoo evaluate` on checkpoints of real runs."""

import csv
import json
import math
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch

import vaezoo
from tests.helpers.commands import MODELS, NETWORK, SMALL
from tests.helpers.toy import ToyDataModule
from vaezoo.cli.main import run
from vaezoo.metrics import functional as F
from vaezoo.metrics.catalogue import METRICS

pytestmark = pytest.mark.xdist_group("evaluate")  # one worker makes what all of them read


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("trained")
    options = [SMALL, NETWORK, "--trainer.max_steps=20", "--trainer.enable_progress_bar=false"]
    for name, model in MODELS.items():
        assert run(["fit", *model, *options, f"--experiment={name}", f"--runs_dir={folder}"]) == 0
    return {name: next(folder.glob(f"{name}/*/checkpoints/last.ckpt")) for name in MODELS}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def evaluate(*args: object) -> int:
    return run(["evaluate", *map(str, args)])


def pool(checkpoint: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes of all 120 pictures, and their factors."""
    data, ids = ToyDataModule(), torch.arange(120)
    x = data.pictures.images(ids).float() * (1 / 255)  # as batches are: another rounding may sort rows otherwise
    return vaezoo.load(checkpoint).represent(x), data.factors_of(ids)


def test_json_says_what_was_computed(checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    names = ["mig_20", "sap_dip", "explicitness", "kl"]
    assert evaluate("--ckpt_path", checkpoints["beta"], "--metrics", *names, "--split=all", "--seed=3") == 0
    found = json.loads(checkpoints["beta"].with_name("metrics.json").read_text())
    codes, factors = (table.double().numpy() for table in pool(checkpoints["beta"]))
    expected = {
        "mig_20": F.mig(codes, factors),
        "sap_dip": F.sap(codes, factors, categorical=(0,)),
        "explicitness": F.explicitness(codes, factors, seed=3),
    }
    assert list(found["metrics"]) == names
    for metric, scores in expected.items():
        shown = {name: score["value"] for name, score in found["metrics"][metric]["scores"].items()}
        assert shown == pytest.approx(scores, abs=1e-6)
    assert (found["images"], found["seed"], found["model"], found["step"]) == (120, 3, "BetaVAE", 20)
    assert (found["data"]["source"], found["data"]["split"]) == ("render", "all")
    assert found["data"]["class"].endswith("SmallDataModule")
    assert found["versions"]["torch"] == version("torch")
    assert {"vaezoo", "numpy", "scikit-learn"} <= set(found["versions"])
    mig, explicitness = found["metrics"]["mig_20"], found["metrics"]["explicitness"]
    assert mig["definition"].startswith("Mutual information gap")
    assert mig["function"] == "vaezoo.metrics.functional.mig"
    assert mig["arguments"]["variant"] == "reference"
    assert mig["interval"] == {"level": 0.95, "resamples": 100, "method": "percentile", "drawn": "images"}
    assert explicitness["interval"]["method"] == "normal"
    assert mig["scores"]["mig_20"]["low"] < mig["scores"]["mig_20"]["value"] < mig["scores"]["mig_20"]["high"]
    shown = capsys.readouterr().out
    assert f"mig_20                {mig['scores']['mig_20']['value']:.4g} [" in shown
    assert "metrics.json" in shown
    assert not Path("comparison.csv").exists()


def test_several_checkpoints_give_one_comparison(
    checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    quick = ["--metrics", "mig_20", "active_units", "--resamples=0", "--split=all"]
    assert evaluate("--ckpt_path", *checkpoints.values(), *quick, "--output=tables/both") == 0
    lines = list(csv.DictReader(Path("tables/both.csv").read_text().splitlines()))
    assert [(line["metric"], line["images"]) for line in lines] == [("mig_20", "120"), ("active_units", "120")] * 2
    assert len({line["checkpoint"] for line in lines}) == 2
    codes, factors = (table.double().numpy() for table in pool(checkpoints["joint"]))
    expected = F.mig(codes, factors, discrete=(4,))["mig_20"]  # the probabilities count as one latent
    assert float(lines[2]["value"]) == pytest.approx(expected, abs=1e-9)
    tex = Path("tables/both.tex").read_text()
    assert rf"mig\_20 & {float(lines[0]['value']):.4g} & {expected:.4g} \\" in tex
    first, header, *_ = capsys.readouterr().out.splitlines()
    assert first == "120 all images of SmallDataModule (render), seed 0"
    assert "beta/" in header
    assert "joint/" in header


def test_a_comparison_is_never_written_over_another(
    checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    quick = ["--ckpt_path", checkpoints["beta"], "--metrics", "active_units", "--resamples=0", "--split=all"]
    assert evaluate(*quick, "--output=one.csv") == 0
    assert not Path("one.tex").exists()
    assert evaluate(*quick, "--output=v1.2") == 0
    before = {path.name: path.read_bytes() for path in Path().glob("*.*")}
    assert set(before) == {"one.csv", "v1.2.csv", "v1.2.tex"}
    capsys.readouterr()
    for again in ("one", "one.csv", "v1.2", "v1.2.tex"):
        assert evaluate(*quick, f"--output={again}") == 1
        said = capsys.readouterr()
        assert "already exists: give another name" in said.err
        assert not said.out  # before anything is scored
    assert {path.name: path.read_bytes() for path in Path().glob("*.*")} == before


def test_a_score_that_does_not_fit_one_of_several_leaves_a_dash(
    checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["--metrics", "active_units", "cluster_accuracy", "mig_20[c]", "--resamples=0", "--split=all"]
    assert evaluate("--ckpt_path", *checkpoints.values(), *names, "--output=both") == 0
    shown = capsys.readouterr().out.splitlines()
    cells = {line.split()[0]: line.split()[1:] for line in shown}
    assert cells["cluster_accuracy"][0] == cells["mig_20[c]"][0] == "–"
    assert "–" not in (*cells["active_units"], cells["cluster_accuracy"][1], cells["mig_20[c]"][1])
    (note,) = [line for line in shown if "cluster_accuracy: " in line]
    assert note.startswith("left out of beta/")
    assert note.endswith("BetaVAE has no discrete latent to read a class from")
    assert any(line.startswith("left out of beta/") and "mig_20[c]: no latent group" in line for line in shown)
    assert r"cluster\_accuracy & -- & " in Path("both.tex").read_text()
    skipped = json.loads(checkpoints["beta"].with_name("metrics.json").read_text())["skipped"]
    assert set(skipped) == {"cluster_accuracy", "mig_20[c]"}
    assert evaluate("--ckpt_path", *checkpoints.values(), "--metrics", "kl", "polar_error", "--resamples=0") == 1
    assert "polar_error does not fit: the data has no factors row and column" in capsys.readouterr().err


def test_a_folder_stands_for_its_best_checkpoint(
    checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(checkpoints["beta"].parent.parent, Path("run"))
    quick = ["--metrics", "active_units", "--resamples=0"]
    assert (folder / "checkpoints" / "best.ckpt").is_file()
    for given in (folder, folder / "checkpoints"):
        assert evaluate("--ckpt_path", given, *quick) == 0
        assert f"{given}: using its best checkpoint, run/checkpoints/best.ckpt" in capsys.readouterr().out
        assert json.loads((folder / "checkpoints" / "metrics.json").read_text())["checkpoint"] == "best.ckpt"
    assert evaluate("--ckpt_path", checkpoints["beta"].parent.parent.parent, *quick) == 1
    assert "holds no checkpoint: name one of its runs, say " in capsys.readouterr().err


def test_too_few_images_are_warned_of(checkpoints: dict[str, Path]) -> None:
    quick = ["--metrics", "mig_20", "sap_dip", "active_units", "--resamples=0", "--split=all"]
    with pytest.warns(
        UserWarning, match="mig_20, sap_dip: 120 images are too few for a reliable score; use 1,000 or more"
    ) as said:
        assert evaluate("--ckpt_path", checkpoints["beta"], *quick) == 0
    assert not [warning for warning in said if "active_units" in str(warning.message)]


def test_names_of_runs_are_escaped_in_every_output(
    checkpoints: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(checkpoints["beta"].parent.parent, tmp_path / "=1+1" / "\x1b[2J\\input{x}")
    paths = [run / "checkpoints" / "last.ckpt", checkpoints["beta"]]
    assert evaluate("--ckpt_path", *paths, "--metrics=kl", "--resamples=0", "--output=all") == 0
    said = capsys.readouterr()
    assert "=1+1/\\x1b[2J\\input{x}" in said.out
    assert "\x1b" not in said.out + said.err
    with Path("all.csv").open(newline="") as file:
        assert {row["checkpoint"][:5] for row in csv.DictReader(file)} == {"'=1+1", "beta/"}
    assert r"=1+1/\textbackslash{}x1b[2J\textbackslash{}input\{x\}" in Path("all.tex").read_text()


def test_what_does_not_fit_is_listed_in_the_order_of_the_scores(checkpoints: dict[str, Path]) -> None:
    assert evaluate("--ckpt_path", checkpoints["beta"], "--resamples=0") == 0
    skipped = json.loads(checkpoints["beta"].with_name("metrics.json").read_text())["skipped"]
    assert {"class_accuracy", "attribute_accuracy", "polar_error"} <= set(skipped)
    assert list(skipped) == [name for name in METRICS if name in skipped]


def test_by_default_whatever_fits_is_scored(checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate("--ckpt_path", checkpoints["joint"], "--split=all", "--resamples=2") == 0
    found = json.loads(checkpoints["joint"].with_name("metrics.json").read_text())
    assert {"mig_20", "dci_fast", "factor_vae_reference", "cluster_accuracy", "kl"} <= set(found["metrics"])
    unfit = {"attribute_accuracy", "label_accuracy", "label_distance", "polar_error", "cartesian_error"}
    assert set(found["skipped"]) == unfit
    assert "no factors row and column, only shape, size, angle" in found["skipped"]["polar_error"]
    assert "left out: polar_error" in capsys.readouterr().out
    codes, factors = pool(checkpoints["joint"])
    accuracy = F.cluster_accuracy(codes[:, 2:].numpy(), factors[:, 0].numpy())["cluster_accuracy"]
    assert found["metrics"]["cluster_accuracy"]["scores"]["cluster_accuracy"]["value"] == pytest.approx(accuracy)
    sums = found["metrics"]["kl"]["scores"]
    assert sums["kl"]["value"] == pytest.approx(sum(sums[f"kl_unit_{u}"]["value"] for u in range(3)))


def test_latents_are_chosen_by_name(checkpoints: dict[str, Path]) -> None:
    options = ["--metrics", "mig_20", "--split=all", "--resamples=0"]
    assert evaluate("--ckpt_path", checkpoints["joint"], *options, "--latents", "z") == 0
    found = json.loads(checkpoints["joint"].with_name("metrics.json").read_text())
    codes, factors = (table.double().numpy() for table in pool(checkpoints["joint"]))
    score = found["metrics"]["mig_20"]["scores"]["mig_20"]["value"]
    assert score == pytest.approx(F.mig(codes[:, :2], factors)["mig_20"])
    assert found["latents"] == ["z"]


def test_one_score_reads_several_choices_of_latents(checkpoints: dict[str, Path]) -> None:
    names = ["mig_20", "mig_20[z]", "sap_dip[c](threshold=0)", "kl[z]", "kl"]
    assert evaluate("--ckpt_path", checkpoints["joint"], "--metrics", *names, "--split=all", "--resamples=2") == 0
    found = json.loads(checkpoints["joint"].with_name("metrics.json").read_text())["metrics"]
    codes, factors = (table.double().numpy() for table in pool(checkpoints["joint"]))
    assert found["mig_20"]["scores"]["mig_20"]["value"] == pytest.approx(
        F.mig(codes, factors, discrete=(codes.shape[1] - 2,))["mig_20"]
    )
    alone = found["mig_20[z]"]["scores"]["mig_20[z]"]
    assert alone["value"] == pytest.approx(F.mig(codes[:, :2], factors)["mig_20"])
    assert alone["low"] <= alone["high"]
    sap = F.sap(codes[:, 2:], factors, categorical=(0,), discrete=(codes.shape[1] - 2,), threshold=0)["sap_dip"]
    assert found["sap_dip[c]"]["scores"]["sap_dip[c]"]["value"] == pytest.approx(sap, abs=1e-6)
    nats, of_z = found["kl"]["scores"], found["kl[z]"]["scores"]
    assert of_z["kl[z]"]["value"] == pytest.approx(nats["kl_unit_0"]["value"] + nats["kl_unit_1"]["value"])
    assert "kl[z]_unit_2" not in of_z
    assert found["kl[z]"]["latents"] == ["z"]


@pytest.mark.parametrize("wrong", ["mig_20[z", "mig_20[]", "mig_20[z]]", "mig_20[w]"])
def test_wrong_choices_of_latents_are_one_line(
    wrong: str, checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate("--ckpt_path", checkpoints["joint"], "--metrics", wrong, "--split=all", "--resamples=0") == 1
    assert (
        "no latent group" if wrong == "mig_20[w]" else "latent groups in square brackets"
    ) in capsys.readouterr().err


def test_scores_take_arguments_and_say_so(checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    names = ["sap_dip(threshold=0, groups=((0, 2),))", "beta_vae_dip(pairs=7, points=40, test_points=30)", "mig_20"]
    assert evaluate("--ckpt_path", checkpoints["beta"], "--metrics", *names, "--split=all", "--resamples=0") == 0
    found = json.loads(checkpoints["beta"].with_name("metrics.json").read_text())["metrics"]
    codes, factors = (table.double().numpy() for table in pool(checkpoints["beta"]))
    expected = {
        "sap_dip": F.sap(codes, factors, categorical=(0,), threshold=0, groups=[[0, 2]]),
        "beta_vae_dip": F.beta_vae_score(codes, factors, variant="dip", pairs=7, points=40, test_points=30),
        "mig_20": F.mig(codes, factors),
    }
    assert list(found) == list(expected)
    for name, scores in expected.items():
        assert found[name]["scores"][name]["value"] == pytest.approx(scores[name], abs=1e-6)
    sap, beta = found["sap_dip"]["arguments"], found["beta_vae_dip"]["arguments"]
    assert (sap["threshold"], sap["groups"], sap["categorical"]) == (0, [[0, 2]], [0])
    assert (beta["pairs"], beta["points"], beta["test_points"], beta["seed"]) == (7, 40, 30, 0)
    assert "sap_dip " in capsys.readouterr().out  # scores keep their names


def test_checkpoints_of_one_folder_do_not_overwrite_each_other(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.ckpt").write_bytes(checkpoints["beta"].read_bytes())
    options = ["--metrics", "active_units", "--resamples=0", SMALL, "--data.test_size=30"]
    assert evaluate("--ckpt_path", "one.ckpt", "two.ckpt", *options) == 0
    assert {path.name for path in tmp_path.glob("*.json")} == {"metrics_one.json", "metrics_two.json"}
    assert json.loads(Path("metrics_one.json").read_text())["images"] == 30
    assert not list(tmp_path.glob("*.csv"))  # tables are written where --output says


def test_infinity_is_written_as_text(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    state: dict[str, Any] = torch.load(checkpoints["beta"], weights_only=True)
    for name, value in state["state_dict"].items():
        if name.startswith("heads.z"):
            value[1] = value[0]  # two equal latents
    torch.save(state, tmp_path / "equal.ckpt")
    options = ["--metrics", "gaussian_total_correlation", "--split=all", SMALL]
    assert evaluate("--ckpt_path", "equal.ckpt", *options) == 0
    scores = json.loads(Path("metrics.json").read_text())["metrics"]["gaussian_total_correlation"]["scores"]
    assert math.isinf(float(scores["gaussian_total_correlation"]["value"]))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--ckpt_path", "none.ckpt"], "no checkpoint at none.ckpt"),
        ([], "--ckpt_path"),
        (
            ["--ckpt_path", "BETA", "--metrics", "mig_2"],
            "no metric is called 'mig_2'; did you mean 'mig_20'? Known: mig_20, ",
        ),
        (
            ["--ckpt_path", "BETA", "--metrics", "polar_error"],
            "polar_error does not fit: the data has no factors row and",
        ),
        (["--ckpt_path", "BETA", "--metrics", "cluster_accuracy"], "BetaVAE has no discrete latent"),
        (["--ckpt_path", "BETA", "--metrics", "mig_20", "--images", "15"], "mig_20 does not fit: codes holds 10 rows"),
        (
            ["--ckpt_path", "BETA", "--metrics", "sap_dip(treshold=1)"],
            "sap_dip has no argument 'treshold'; it takes categorical, threshold, groups, correlation",
        ),
        (["--ckpt_path", "BETA", "--metrics", "sap_reference(threshold=1)"], "no argument 'threshold'; it takes test_"),
        (["--ckpt_path", "BETA", "--metrics", "polar_error(bins=2)"], "no argument 'bins'; it takes none"),
        (["--ckpt_path", "BETA", "--metrics", "sap_dip(threshold='low')"], "sap_dip(threshold='low'): "),
        (["--ckpt_path", "BETA", "--metrics", "sap_dip(threshold=open('x'))"], "with a plain value"),
        (["--ckpt_path", "BETA", "--metrics", "sap_dip(threshold=1, threshold=2)"], "expected each argument once"),
        (["--ckpt_path", "BETA", "--metrics", "sap_dip(0.1)"], "by name"),
        (["--ckpt_path", "BETA", "--metrics", "sap_dip(threshold=1"], "lacks its closing bracket: quote it whole"),
        (["--ckpt_path", "BETA", "--metrics", "sap_dip", "sap_dip(threshold=1)"], "sap_dip is named twice"),
        (["--ckpt_path", "BETA", "--metrics", "beta_vae_dip(pairs=0)"], "pairs must be 1 or more, not 0"),
        (["--ckpt_path", "BETA", "--metrics", "attribute_accuracy"], "attributes must be 0 or 1"),
        (["--ckpt_path", "BETA", "--metrics", "attribute_accuracy", "--split", "all"], "fitted on training images"),
        (["--ckpt_path", "BETA", "--metrics", "label_accuracy"], "BetaVAE decodes no labels"),
        (["--ckpt_path", "BETA", "--data", "BlobsDataModule"], "reads images of (1, 1, 2), but BlobsDataModule gives"),
        (["--ckpt_path", "BETA", "--data.test_sise", "3"], "SmallDataModule has no argument 'test_sise'"),
        (["--ckpt_path", "BETA", "--data.test_size", "0", "--split", "test"], "holds no test images"),
        (["--ckpt_path", "BETA", "--split", "tests"], "'tests' is none of"),
        (["--ckpt_path", "BETA", "--latents", "c"], "no latent group is called 'c'; the model decodes z"),
        (["--ckpt_path", "moved.ckpt"], "holds no config.yaml that names the data: give --data"),
    ],
)
def test_a_wrong_evaluation_is_one_line(
    args: list[str], message: str, checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("moved.ckpt").write_bytes(checkpoints["beta"].read_bytes())
    assert evaluate(*(checkpoints["beta"] if arg == "BETA" else arg for arg in args)) != 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("vaezoo: error:")]
    assert message in line


def test_help_lists_the_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run(["evaluate", "--help"])
    assert stop.value.code == 0
    assert "factor_vae_parted" in capsys.readouterr().out
