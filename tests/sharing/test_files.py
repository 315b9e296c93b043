"""The folder of a shared model: every model survives it, and what is wrong with one is one line that names the file."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import vaezoo
from tests.helpers.harness import attempt
from tests.helpers.paths import DATA
from tests.helpers.zoo import SHAPE, Make, a_batch, models
from vaezoo.models.base import VAE
from vaezoo.nn.networks import DenseNetwork
from vaezoo.regularizers import CovarianceMatching, DiscriminatedTotalCorrelation
from vaezoo.runs.checkpoint_io import read_checkpoint
from vaezoo.runs.files import MOST_BYTES

RUNS = sorted((DATA / "runs_0_1").glob("*/*/checkpoints/last.ckpt"))


def tiny(**options: Any) -> VAE:
    return vaezoo.BetaVAE(SHAPE, 3, network=DenseNetwork((8,), (8,)), **options).eval()


def same(one: VAE, other: VAE) -> bool:
    states = one.state_dict(), other.state_dict()
    return states[0].keys() == states[1].keys() and all(
        torch.equal(states[0][name], states[1][name]) for name in states[0]
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    vaezoo.save_pretrained(tiny(), tmp_path / "model")
    return tmp_path / "model"


def change(folder: Path, **entries: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | entries))


@models
def test_every_model_survives(make: Make, tmp_path: Path) -> None:
    model = make().eval()
    model.step.fill_(7)
    model.dataset_size = 123
    vaezoo.save_pretrained(model, tmp_path)
    for read in (vaezoo.from_pretrained(tmp_path), vaezoo.load(tmp_path), vaezoo.load(tmp_path / "model.safetensors")):
        assert type(read) is type(model)
        assert not read.training
        assert same(read, model)
        assert read.hparams == model.hparams
        assert (int(read.step), read.dataset_size) == (7, 123)
        assert torch.equal(read.represent(a_batch().x), model.represent(a_batch().x))


@models
def test_half_precision_is_read_as_float32(make: Make, tmp_path: Path) -> None:
    model = make().eval()
    vaezoo.save_pretrained(model, tmp_path, half=True)
    read = vaezoo.from_pretrained(tmp_path)
    assert {p.dtype for p in read.parameters()} == {torch.float32}
    for (name, own), (_, found) in zip(model.named_parameters(), read.named_parameters(), strict=True):
        assert torch.equal(found, own.half().float()), name
    assert all(torch.equal(own, found) for own, found in zip(model.buffers(), read.buffers(), strict=True))
    assert json.loads((tmp_path / "config.json").read_text())["weights"]["precision"] == "float16"


def test_numbers_beyond_half_precision_stay_whole(tmp_path: Path) -> None:
    model = tiny()
    bias = next(model.decoder.parameters())
    with torch.no_grad():
        bias.view(-1)[0] = 1e6  # half precision ends at 65,504
    vaezoo.save_pretrained(model, tmp_path, half=True)
    assert torch.equal(next(vaezoo.from_pretrained(tmp_path).decoder.parameters()), bias)


@pytest.mark.parametrize("checkpoint", RUNS, ids=lambda path: path.parts[-4])
def test_runs_of_earlier_versions_survive(checkpoint: Path, tmp_path: Path) -> None:
    model = vaezoo.load(checkpoint)
    vaezoo.save_pretrained(model, tmp_path)
    read = vaezoo.from_pretrained(tmp_path)
    assert same(read, model)
    assert list(read.regularizers) == list(model.regularizers)


def test_terms_that_were_added_survive(tmp_path: Path) -> None:
    model = tiny()
    model.add_regularizer("dip", CovarianceMatching(lambda_od=3.0))
    model.add_regularizer("tc", DiscriminatedTotalCorrelation(width=4))
    vaezoo.save_pretrained(model, tmp_path)
    read = vaezoo.from_pretrained(tmp_path)
    assert same(read, model)
    assert list(read.regularizers) == ["kl", "dip", "tc"]
    assert read.regularizers["dip"].lambda_od == 3.0


def test_the_configuration_is_plain_and_complete(tmp_path: Path) -> None:
    data = {"class_path": "datamodules.BlobsDataModule", "init_args": {"data_dir": "/home/me/data", "samples": 1}}
    scores = {"images": 10, "metrics": {"mig_20": {"scores": {"mig_20": {"value": 0.5, "low": 0.4, "high": 0.6}}}}}
    facts = {"command": "vaezoo fit --config x", "commit": "abc", "license": "mit"}
    vaezoo.save_pretrained(tiny(), tmp_path, data=data, scores=scores, **facts)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["format"] == 1
    assert config["vaezoo"] == vaezoo.__version__
    assert config["model_class"] == "vaezoo.BetaVAE"
    assert config["arguments"]["network"]["class_path"] == "vaezoo.DenseNetwork"
    assert config["data"]["init_args"] == {"samples": 1}, "no path of this machine is shared"
    assert scores.items() <= config["scores"].items()
    assert {name: config[name] for name in facts} == facts


def test_a_fact_of_another_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="licence"):
        vaezoo.save_pretrained(tiny(), tmp_path, licence="mit")  # type: ignore[call-arg]


def cut(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-8])


def flip(folder: Path) -> None:
    file = folder / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(bytes(content))


def pickled(folder: Path) -> None:
    torch.save({"a": 1}, folder / "model.safetensors")
    whole(folder)


def garbage(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\xff" * 100)
    whole(folder)


def whole(folder: Path) -> None:
    """Let the checksum be right, as whoever means harm would."""
    from vaezoo.runs.shared import sha256_of

    file = folder / "model.safetensors"
    change(folder, weights={"sha256": sha256_of(file), "bytes": file.stat().st_size})


def arguments(folder: Path, **changed: Any) -> None:
    change(folder, arguments=json.loads((folder / "config.json").read_text())["arguments"] | changed)


CONFIG, WEIGHTS = "config.json", "model.safetensors"
WRONG: dict[str, tuple[Any, str, str]] = {
    "cut off": (cut, WEIGHTS, "damaged"),
    "one bit": (flip, WEIGHTS, "SHA-256"),
    "a pickle": (pickled, WEIGHTS, "damaged"),
    "garbage": (garbage, WEIGHTS, "damaged"),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), WEIGHTS, "missing"),
    "no config": (lambda f: (f / CONFIG).unlink(), CONFIG, "save_pretrained"),
    "no JSON": (lambda f: (f / CONFIG).write_text("{"), CONFIG, "damaged"),
    "bytes": (lambda f: (f / CONFIG).write_bytes(b"\xff\xfe"), CONFIG, "damaged"),
    "deep": (lambda f: (f / CONFIG).write_text("[" * 100_000), CONFIG, "damaged"),
    "a list": (lambda f: (f / CONFIG).write_text("[1]"), CONFIG, "no vaezoo model"),
    "another library's": (lambda f: (f / CONFIG).write_text('{"model_type": "bert"}'), CONFIG, "no vaezoo model"),
    "oversize": (lambda f: (f / CONFIG).write_text(" " * MOST_BYTES + "{}"), CONFIG, "kB"),
    "a later format": (lambda f: change(f, format=99), CONFIG, "pip install -U vaezoo"),
    "no class": (lambda f: change(f, model_class=None), CONFIG, "model_class"),
    "no checksum": (lambda f: change(f, weights={}), CONFIG, "sha256"),
    "unknown argument": (lambda f: arguments(f, spy=1), CONFIG, "spy"),
    "wrong argument": (lambda f: arguments(f, latent_dim="many"), CONFIG, "BetaVAE"),
    "other sizes": (lambda f: arguments(f, latent_dim=4), WEIGHTS, "does not fit"),
    "no room for it": (lambda f: arguments(f, latent_dim=10**12), WEIGHTS, "does not fit"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_line_that_names_the_file(name: str, folder: Path) -> None:
    spoil, file, words = WRONG[name]
    spoil(folder)
    with pytest.raises((ValueError, FileNotFoundError), match=words) as caught:
        vaezoo.from_pretrained(folder)
    assert str(folder / file) in str(caught.value) or file in str(caught.value)
    assert "\n" not in str(caught.value)
    code, line = attempt(["traverse", "--prior", "--ckpt_path", str(folder), "--output", str(folder / "drawn")])
    assert code == 1
    assert file in line or name == "no weights"


ATTACKS: dict[str, dict[str, Any]] = {
    "class": {"model_class": "spy.Spy"},
    "function": {"model_class": "os.system"},
    "network": {"arguments": {"image_shape": SHAPE, "network": {"class_path": "spy.Spy"}}},
    "regularizer": {"arguments": {"image_shape": SHAPE, "regularizers": {"a": {"class_path": "spy.Spy"}}}},
    "instantiator": {"arguments": {"_instantiator": "lightning.pytorch.cli.instantiate_module", "image_shape": SHAPE}},
    "data": {"data": {"class_path": "spy.Spy", "init_args": {}}},
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_a_folder_names_is_imported(attack: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = folder.parent / "trace"
    (folder.parent / "spy.py").write_text(f"import pathlib\npathlib.Path({str(trace)!r}).touch()\n")
    monkeypatch.chdir(folder.parent)
    monkeypatch.syspath_prepend(str(folder.parent))
    change(folder, **ATTACKS[attack])
    if attack != "data":
        with pytest.raises(ValueError, match=r"is not an imported|does not describe"):
            vaezoo.from_pretrained(folder)
    assert attempt(["evaluate", "--ckpt_path", str(folder)])[0] == 1
    assert not trace.exists()


def test_notes_cannot_stand_for_weights(folder: Path) -> None:
    change(folder, notes={"state_dict": {"x": 1}, "model_class": "spy.Spy", "hyper_parameters": {}})
    assert read_checkpoint(folder / WEIGHTS)["model_class"] == "vaezoo.BetaVAE"
    assert same(vaezoo.from_pretrained(folder), vaezoo.load(folder))
