"""Configurations with one thing wrong."""

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from tests.helpers.harness import attempt, tries

WIDTHS = {"encoder_widths": [8], "decoder_widths": [8]}
MORE = {"class_path": "Capacity", "init_args": {"max_nats": 3.0, "steps": 10}}
MODEL = {
    "latent_dim": 2,
    "beta": 4.0,
    "lr": 1e-3,
    "likelihood": "bernoulli",
    "network": {"class_path": "DenseNetwork", "init_args": WIDTHS},
    "regularizers": {"more": MORE},
}
DATA = {"batch_size": 2, "val_size": 10, "test_size": 10, "samples": 2, "bins": 2, "labels": 0.5, "observed": 1.0}
CONFIG = {
    "model": {"class_path": "BetaVAE", "init_args": MODEL},
    "data": {"class_path": "BlobsDataModule", "init_args": DATA},
    "trainer": {
        "max_steps": 1,
        "accelerator": "cpu",
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "callbacks": [{"class_path": "SavePictures", "init_args": {"images": 1, "steps": 2}}],
    },
    "seed_everything": 1,
    "experiment": "fuzz",
}
DELETED = object()
EVIL = {"class_path": "os.system", "init_args": {"command": "touch hacked"}}
VALUES = [DELETED, None, "", "x", "é\u2028\x85x", "a\nb", -1, 0, 2, -1.5, 1e30, 10**20, math.nan, math.inf, -math.inf]
VALUES += [
    True,
    [],
    [1],
    [-1],
    {},
    {"a": 1},
    "os.system",
    "builtins.eval",
    EVIL,
    "BetaVAE",
    {"class_path": "KL"},
    [[[]]],
]


def places(value: Any, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield prefix
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*prefix, key))


PLACES = [place for place in places(CONFIG) if place]
SHORT = "--trainer.fast_dev_run=true"  # however wrong the limits in the file are, nothing trains for long


def changed(place: tuple[Any, ...], value: Any) -> Any:
    config = copy.deepcopy(CONFIG)
    at: Any = config
    for key in place[:-1]:
        at = at[key]
    if value is DELETED:
        del at[place[-1]]
    else:
        at[place[-1]] = value
    return config


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def fit(config: Any) -> tuple[int, str]:
    Path("config.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), encoding="utf-8")
    code, line = attempt(["fit", "--config=config.yaml", SHORT])
    assert not Path("hacked").exists()
    assert not list(Path().glob("runs/**/*.ckpt"))
    return code, line


def test_the_configuration_itself_is_right() -> None:
    assert fit(CONFIG) == (0, "")


@tries(40)
@given(place=st.sampled_from(PLACES), value=st.sampled_from(VALUES))
def test_one_wrong_value(place: tuple[Any, ...], value: Any) -> None:
    fit(changed(place, value))


@tries(12)
@given(text=st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_a_file_of_anything(text: str) -> None:
    Path("config.yaml").write_text(text, encoding="utf-8", errors="surrogatepass")
    code, _ = attempt(["fit", "--config=config.yaml"])
    assert code != 0


@pytest.mark.parametrize("depth", [50, 3000])
def test_a_deeply_nested_file(depth: int) -> None:
    Path("config.yaml").write_text("model: " + "[" * depth + "]" * depth)
    assert attempt(["fit", "--config=config.yaml"])[0] != 0


REFUSED = [
    ("model.init_args.lr", -1.0),
    ("model.init_args.lr", math.nan),
    ("model.init_args.beta", math.nan),
    ("model.init_args.beta", -4.0),
    ("model.init_args.beta", None),
    ("model.init_args.latent_dim", 0),
    ("model.init_args.network.init_args.encoder_widths", []),
    ("model.init_args.network.init_args.decoder_widths", [0]),
    ("model.init_args.regularizers.more.init_args.max_nats", math.inf),
    ("model.init_args.regularizers.more.init_args.steps", -1),
    ("model.init_args.regularizers.more.init_args.steps", None),
    ("data.init_args.batch_size", 0),
    ("data.init_args.batch_size", None),
    ("data.init_args.val_size", -1),
    ("data.init_args.val_size", 10**20),
    ("data.init_args.samples", 0),
    ("data.init_args.bins", 1),
    ("data.init_args.labels", math.nan),
    ("data.init_args.observed", math.nan),
    ("trainer.max_steps", -2),
    ("trainer.max_steps", 1.5),
]


@pytest.mark.parametrize(("key", "value"), REFUSED, ids=lambda item: str(item))
def test_nonsense_is_refused_by_name(key: str, value: Any) -> None:
    """A value of the right type that means nothing never trains, and the error names it."""
    place = tuple(key.split("."))
    code, line = fit(changed(place, value))
    known = {"latent_dim": "dim"}.get(place[-1], place[-1])
    assert code != 0
    assert known in line, line


def test_json_of_the_command_line() -> None:
    model, data = (f"--{name}={json.dumps(CONFIG[name])}" for name in ("model", "data"))
    assert attempt(["fit", model, data, SHORT]) == (0, "")
    assert attempt(["fit", model, "--data={", SHORT])[0] != 0
