"""`vaezoo share`: a run as a folder to give away, with its scores, its card and its configuration."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from huggingface_hub.repocard_data import model_index_to_eval_results

import vaezoo
from datamodules import ImageDataModule
from tests.helpers.harness import attempt
from tests.helpers.paths import DATA
from tests.helpers.pretrained import require_finite_codes, require_recorded_scores
from tests.helpers.zoo import SHAPE
from vaezoo.cli.main import run
from vaezoo.nn.networks import DenseNetwork
from vaezoo.runs.data import RunData
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.loading import load
from vaezoo.sharing.precision import checked_half
from vaezoo.sharing.scores import again, differing

NETWORK = '{"class_path": "DenseNetwork", "init_args": {"encoder_widths": [8], "decoder_widths": [8]}}'
FIT = ["--model=BetaVAE", "--model.latent_dim=3", f"--model.network={NETWORK}", "--data=BlobsDataModule"]
FIT += ["--data.samples=1", "--data.val_size=100", "--data.test_size=400", "--data.batch_size=16", "--experiment=tiny"]
FIT += ["--trainer.max_steps=20", "--trainer.limit_val_batches=1", "--trainer.enable_progress_bar=false"]
FIT += ["--trainer.callbacks+=SavePictures", "--trainer.callbacks+=AddRegularizer", "--trainer.callbacks.name=dip"]
FIT += ["--trainer.callbacks.regularizer=CovarianceMatching"]
METRICS = ["mig_20", "sap_dip(threshold=0.01)"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the command line that was scored."""
    home = tmp_path_factory.mktemp("trained")
    assert run(["fit", *FIT, f"--runs_dir={home}", f"--data.data_dir={home}/data"]) == 0
    (folder,) = (home / "tiny").iterdir()
    assert run(["evaluate", f"--ckpt_path={folder}", "--metrics", *METRICS, "--images=300", "--resamples=10"]) == 0
    return folder


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def content() -> dict[str, Any]:
    return dict(json.loads(Path("tiny", "config.json").read_text()))


def test_a_run_is_shared_whole(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["share", str(trained), "--name=tiny", "--license=mit", "--command=vaezoo fit …"]) == 0
    model, read = load(RunFolder(trained).last), vaezoo.from_pretrained("tiny")
    assert all(torch.equal(value, read.state_dict()[name]) for name, value in model.state_dict().items())
    assert list(read.regularizers) == ["kl", "dip"]
    config = content()
    assert (config["name"], config["license"], config["command"], config["steps"]) == (
        "tiny",
        "mit",
        "vaezoo fit …",
        20,
    )
    assert len((config["commit"] or "0" * 40).removesuffix("-dirty")) == 40
    left = json.loads((trained / "checkpoints" / "metrics.json").read_text())
    assert config["scores"]["metrics"] == left["metrics"]
    assert (config["scores"]["split"], config["scores"]["images"]) == ("test", 300)
    assert config["data"]["class_path"] == "datamodules.BlobsDataModule"
    assert not any(
        str(trained.parents[1]) in file.read_text()
        for file in map(Path, ("tiny/config.json", "tiny/README.md", "tiny/training.yaml"))
    )
    said = capsys.readouterr().out
    assert "vaezoo.from_pretrained('tiny')" in said
    assert "no scores" not in said


def test_the_card_says_what_it_should(trained: Path) -> None:
    assert run(["share", str(trained), "--name=tiny", "--license=mit"]) == 0
    card = Path("tiny", "README.md").read_text()
    header = yaml.safe_load(card.split("---\n")[1])
    assert (header["license"], header["library_name"]) == ("mit", "vaezoo")
    _, results = model_index_to_eval_results(header["model-index"])
    kept = content()["scores"]["metrics"]
    assert {result.metric_type: result.metric_value for result in results} == {
        name: kept[name]["scores"][name]["value"] for name in ("mig_20", "sap_dip")
    }
    score = kept["mig_20"]["scores"]["mig_20"]
    assert f"| mig_20 | {score['value']:.4g} [{score['low']:.4g}, {score['high']:.4g}] |" in card
    for words in ("Higgins et al., 2017", "Blobs", "vaezoo fit --config training.yaml", "## Limits", "## Use it"):
        assert words in card
    pictures = [line.partition("](")[2].rstrip(")") for line in card.splitlines() if line.startswith("![")]
    assert pictures
    assert all(Path("tiny", picture).is_file() for picture in pictures)


def test_a_card_shows_images_before_plots(tmp_path: Path) -> None:
    vaezoo.save(vaezoo.BetaVAE(SHAPE, 3, network=DenseNetwork((8,), (8,))), tmp_path / "run/checkpoints/best.ckpt")
    for name in ("covariance", "importance", "nats_z", "reconstructions", "samples", "large"):
        file = RunFolder(tmp_path / "run").pictures / f"{name}.png"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"x" * (400_000 if name == "large" else 10))
    assert run(["share", "run", "--name=tiny"]) == 0
    found = {path.stem for path in Path("tiny", "pictures").iterdir()}
    assert found == {"reconstructions", "samples", "covariance", "importance"}


def test_commands_take_the_folder(trained: Path) -> None:
    assert run(["share", str(trained), "--name=tiny"]) == 0
    assert attempt(["evaluate", "--ckpt_path=tiny", "--metrics", *METRICS, "--images=300", "--resamples=0"]) == (0, "")
    scored = json.loads(Path("tiny", "metrics.json").read_text())["metrics"]
    for name, entry in content()["scores"]["metrics"].items():
        assert scored[name]["scores"][name]["value"] == pytest.approx(entry["scores"][name]["value"], abs=1e-6)
    assert attempt(["traverse", "--ckpt_path=tiny", "--pool=50"]) == (0, "")
    config = ["--config=tiny/training.yaml", "--trainer.enable_progress_bar=false"]
    for command in ("test", "predict"):
        assert attempt([command, *config, "--ckpt_path=tiny", f"--experiment={command}"]) == (0, "")
    assert attempt(["fit", *config, "--init_from=tiny", "--trainer.max_steps=1", "--experiment=more"]) == (0, "")
    code, line = attempt(["fit", *config, "--ckpt_path=tiny"])
    assert code == 1
    assert "training cannot resume from it" in line


def test_what_was_shared_before_keeps_its_facts(trained: Path) -> None:
    options = ["--half=true", "--license=mit", "--command=vaezoo fit …", "--commit=abc"]
    assert run(["share", str(trained), "--name=first", *options]) == 0
    assert run(["share", "first", "--name=tiny", "--license=cc0-1.0"]) == 0
    first, second = json.loads(Path("first", "config.json").read_text()), content()
    assert second == first | {"name": "tiny", "license": "cc0-1.0"}
    for name in ("model.safetensors", "training.yaml"):
        assert Path("tiny", name).read_bytes() == Path("first", name).read_bytes()


def test_half_precision_keeps_its_own_scores(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["share", str(trained), "--name=tiny", "--half=true"]) == 0
    said = capsys.readouterr().out
    assert "codes of 400 test images change by" in said
    assert "scores hold" in said
    data, _ = RunData(ImageDataModule).of(RunFolder(Path("tiny")))
    kept, now = content()["scores"], again(vaezoo.from_pretrained("tiny"), data, content()["scores"])
    assert json.loads(json.dumps(now)) == kept, (
        "the scores of what is stored, with the same images, seed, arguments and resamples"
    )
    assert kept["metrics"]["sap_dip"]["arguments"]["threshold"] == 0.01
    kept["metrics"]["mig_20"]["scores"]["mig_20"] = {"value": 0.9, "low": 0.89, "high": 0.91}
    (line,) = differing(kept, now)
    assert line.startswith("mig_20 was 0.9 [0.89, 0.91] and is ")


def test_the_check_of_recorded_scores_sees_what_it_should(trained: Path) -> None:
    """What `test_pretrained.py` asks of every model that comes with the package, of one that is made here."""
    assert run(["share", str(trained), "--name=tiny"]) == 0
    require_finite_codes(vaezoo.from_pretrained("tiny"))
    require_recorded_scores(Path("tiny"))
    config = content()
    file = Path("tiny", "config.json")
    file.write_text(json.dumps(config | {"data": {"class_path": "ChairsDataModule", "init_args": {}}}))
    with pytest.raises(pytest.skip.Exception, match="the data is not here"):
        require_recorded_scores(Path("tiny"))
    config["scores"]["metrics"]["mig_20"]["scores"]["mig_20"] = {"value": 0.9, "low": 0.89, "high": 0.91}
    file.write_text(json.dumps(config))
    with pytest.raises(AssertionError, match="mig_20 was"):
        require_recorded_scores(Path("tiny"))


def test_without_its_data_half_precision_is_checked_on_noise(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = trained / "config.yaml"
    before = config.read_text()
    try:
        config.write_text(before.replace("datamodules.BlobsDataModule", "datamodules.ChairsDataModule"))
        assert run(["share", str(trained), "--name=tiny", "--half=true"]) == 0
    finally:
        config.write_text(before)
    said = capsys.readouterr()
    assert "the run's data cannot be opened here" in said.out, said.err
    assert "codes of noise change by" in said.out


def test_a_model_that_half_precision_breaks_is_refused() -> None:
    model = vaezoo.BetaVAE(SHAPE, 3, network=DenseNetwork((8,), (8,))).eval()
    first = next(model.encoder.parameters())
    with torch.no_grad():
        first.mul_(1e-8)  # below the smallest number of half precision
        for layer in model.encoder.modules():
            if isinstance(layer, torch.nn.Linear):
                layer.bias.zero_()
        for head in model.heads.parameters():
            head.mul_(1e8)
    with pytest.raises(ValueError, match="leave out --half"):
        checked_half(model, None, None)


def test_scores_of_another_checkpoint_are_not_taken(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = trained / "checkpoints" / "metrics.json"
    before = file.read_text()
    try:
        file.write_text(json.dumps(json.loads(before) | {"checkpoint": "best.ckpt"}))
        assert run(["share", str(trained), "--name=tiny"]) == 0
        assert content()["scores"] is None
        assert "the card has no scores" in capsys.readouterr().out
        assert run(["share", str(trained), "--name=other", f"--scores={file}"]) == 0
        assert json.loads(Path("other", "config.json").read_text())["scores"]["images"] == 300
    finally:
        file.write_text(before)


@pytest.mark.parametrize("name", ["betavae_added", "larvae", "jointvae", "partedvae", "welavae"])
def test_runs_of_earlier_versions_are_shared(name: str) -> None:
    found = sorted((DATA / "runs_0_1").glob(f"{name}/*"))
    if not found:
        pytest.skip("there is no such run")
    assert run(["share", str(found[0]), "--name=tiny", "--half=true"]) == 0
    assert (
        vaezoo.from_pretrained("tiny").represent(torch.rand(2, *vaezoo.load(Path("tiny")).image_shape)).isfinite().all()
    )
    assert ".networks." not in Path("tiny", "training.yaml").read_text()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--name=a/b"], "--name 'a/b'"),
        (["--name=full"], "full already exists"),
        (["--name=x", "--scores=full/notes.txt"], "notes.txt holds no scores"),
        (["--name=x", "--scores=none.json"], "none.json"),
        ([], "name"),
    ],
)
def test_wrong_options_are_one_line(args: list[str], words: str, trained: Path) -> None:
    Path("full").mkdir()
    Path("full", "notes.txt").write_text("mine")
    code, line = attempt(["share", str(trained), *args])
    assert code in (1, 2)
    assert words in line
    assert [path.name for path in Path("full").iterdir()] == ["notes.txt"]
    assert not Path("x").exists()
