"""Trained models by name: all that come with the package load and keep their scores; others come from an address."""

import json
import re
import shutil
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch

import vaezoo
from tests.helpers.harness import attempt
from tests.helpers.pretrained import require_finite_codes, require_recorded_scores
from tests.helpers.zoo import MODELS, a_batch
from vaezoo.cli.main import run
from vaezoo.runs.folder import RunFolder
from vaezoo.sharing import pretrained
from vaezoo.sharing.card import model_card
from vaezoo.sharing.pretrained import SHIPPED, pretrained_names

MOST_BYTES = 20_000_000
NAMES = pretrained_names() or [pytest.param("", marks=pytest.mark.skip("no model comes with this version"))]


@pytest.mark.parametrize("name", NAMES)
def test_a_model_loads_and_gives_finite_codes(name: str) -> None:
    config = pretrained.pretrained_config(name)
    assert config["name"] == name
    assert all(config[fact] for fact in ("data", "scores", "command", "commit", "license"))
    place = RunFolder(SHIPPED / name)
    assert place.card.read_text() == model_card(config, place.all_pictures(), f"pretrained:{name}")
    assert place.training.is_file()
    if config["weights"].get("address"):
        pytest.skip("its weights are not part of the package")
    require_finite_codes(vaezoo.pretrained(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_model_has_the_scores_that_it_records(name: str) -> None:
    if pretrained.pretrained_config(name)["weights"].get("address"):
        pytest.skip("its weights are not part of the package")
    require_recorded_scores(SHIPPED / name)


def test_what_comes_with_the_package_is_small() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*") if path.is_file()) <= MOST_BYTES


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of models like the package's own, with one in it."""
    folder = tmp_path / "package"
    monkeypatch.setattr(pretrained, "SHIPPED", folder)
    monkeypatch.setenv("VAEZOO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    facts: dict[str, Any] = {"license": "mit", "commit": "abc", "command": "vaezoo fit --config betavae_3dshapes"}
    scores = {"images": 10, "metrics": {"mig_20": {"scores": {"mig_20": {"value": 0.5, "low": 0.4, "high": 0.6}}}}}
    data = {"class_path": "datamodules.BlobsDataModule", "init_args": {"samples": 1}}
    vaezoo.save_pretrained(MODELS["PartedVAE"](), folder / "parted_tiny", data=data, scores=scores, **facts)
    (folder / "parted_tiny" / "training.yaml").write_text("seed_everything: 1\n")
    return folder


def test_a_name_is_a_model_and_a_checkpoint(shipped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = vaezoo.load(shipped / "parted_tiny")
    x = a_batch().x
    for model in (vaezoo.pretrained("parted_tiny"), vaezoo.from_pretrained("parted_tiny")):
        require_finite_codes(model)
        assert torch.equal(model.represent(x), expected.represent(x))
    for ckpt_path in (["--ckpt_path=pretrained:parted_tiny"], ["--ckpt_path", "pretrained:parted_tiny"]):
        shutil.rmtree("pretrained", ignore_errors=True)
        assert attempt(["traverse", "--prior", *ckpt_path]) == (0, "")
        assert list(Path("pretrained/parted_tiny/traversals").iterdir())
    for words in (["pretrained:parted_tiny", "units"], ["units", "--ckpt_path=pretrained:parted_tiny"]):
        shutil.rmtree("drawn", ignore_errors=True)
        assert attempt(["figure", *words, "--prior", "--output=drawn"]) == (0, "")
    assert attempt(["export", "--ckpt_path", "pretrained:parted_tiny", "--format=safetensors"]) == (0, "")
    assert Path("pretrained/parted_tiny/export/encoder.safetensors").is_file()
    assert Path("pretrained/parted_tiny/training.yaml").read_text() == "seed_everything: 1\n"
    assert not (shipped / "parted_tiny" / "traversals").exists(), "nothing is written into the package"


def test_the_list_says_what_each_is(shipped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pretrained"]) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"""
parted_tiny
  PartedVAE \(Hajimiri et al\., 2021\), Blobs, 0\.\d MB
  mig_20 0\.5 \[0\.4, 0\.6\]
  vaezoo fit --config betavae_3dshapes
""",
        said,
    )
    assert run(["pretrained", "parted_tiny"]) == 0
    card = capsys.readouterr().out
    assert "## Limits" in card
    assert 'model = vaezoo.pretrained("parted_tiny")' in card
    shutil.rmtree(shipped / "parted_tiny")
    assert run(["pretrained"]) == 0
    assert "no pretrained model" in capsys.readouterr().out


@pytest.mark.parametrize("args", [["pretrained", "parted_tin"], ["evaluate", "--ckpt_path=pretrained:parted_tin"]])
def test_another_name_is_one_line(args: list[str], shipped: Path) -> None:
    code, line = attempt(args)
    assert code == 1
    assert "did you mean 'parted_tiny'?" in line
    with pytest.raises(ValueError, match="see vaezoo pretrained"):
        vaezoo.pretrained("../parted_tiny")


@pytest.fixture
def web(shipped: Path, tmp_path: Path) -> Iterator[Path]:
    """The model's weights on a server, and not in the package."""
    folder = tmp_path / "web"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        (shipped / "parted_tiny" / "model.safetensors").rename(folder / "weights.safetensors")
        file = shipped / "parted_tiny" / "config.json"
        config = json.loads(file.read_text())
        config["weights"]["address"] = f"http://127.0.0.1:{server.server_port}/weights.safetensors"
        file.write_text(json.dumps(config))
        yield folder
        server.shutdown()


def test_weights_are_fetched_once(web: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pretrained"]) == 0
    assert "to fetch" in capsys.readouterr().out
    before = vaezoo.pretrained("parted_tiny")
    assert list((tmp_path / "cache" / "pretrained" / "parted_tiny").glob("*/model.safetensors"))
    (web / "weights.safetensors").unlink()
    assert torch.equal(vaezoo.pretrained("parted_tiny").represent(a_batch().x), before.represent(a_batch().x))


def test_a_damaged_cache_is_fetched_again(web: Path, tmp_path: Path) -> None:
    vaezoo.pretrained("parted_tiny")
    (cached,) = (tmp_path / "cache" / "pretrained" / "parted_tiny").glob("*/model.safetensors")
    whole = cached.read_bytes()
    cached.write_bytes(whole[:-1] + b"\0")
    vaezoo.pretrained("parted_tiny")
    assert cached.read_bytes() == whole


@pytest.mark.parametrize("spoil", [lambda b: b[:-1], lambda b: b + b"\0" * 1000, lambda b: b[:-1] + bytes([b[-1] ^ 1])])
def test_another_file_is_refused(spoil: Any, web: Path, tmp_path: Path) -> None:
    file = web / "weights.safetensors"
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(ValueError, match="SHA-256"):
        vaezoo.pretrained("parted_tiny")
    assert not list((tmp_path / "cache").rglob("*.safetensors*"))


def test_a_server_that_does_not_answer_is_one_line(web: Path) -> None:
    (web / "weights.safetensors").unlink()
    code, line = attempt(["traverse", "--prior", "--ckpt_path=pretrained:parted_tiny"])
    assert code == 1
    assert "could not be downloaded" in line


def test_an_address_is_of_the_web(web: Path, shipped: Path) -> None:
    file = shipped / "parted_tiny" / "config.json"
    config = json.loads(file.read_text())
    config["weights"]["address"] = (web / "weights.safetensors").as_uri()
    file.write_text(json.dumps(config))
    with pytest.raises(ValueError, match="https://"):
        vaezoo.pretrained("parted_tiny")
