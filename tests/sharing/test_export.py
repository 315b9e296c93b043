"""Exported encoders and decoders compute what the model computes, without vaezoo, and say what their numbers are."""

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import safetensors.torch
import torch
import yaml
from torch import Tensor

import vaezoo
from tests.helpers.harness import attempt
from tests.helpers.paths import ROOT
from tests.helpers.zoo import MODELS, NETWORK, SHAPE, models
from vaezoo.cli.main import run
from vaezoo.models import VAE
from vaezoo.sharing.export import ExportError
from vaezoo.sharing.export_facts import export_facts, label_names_of
from vaezoo.specs import find

FORMATS = {"onnx": ".onnx", "torch_export": ".pt2", "safetensors": ".safetensors"}
Outputs = dict[str, np.ndarray]
SLOW = pytest.mark.slow  # seconds a model
FEW = ("PartedVAE of two variables", "WeLaVAE")  # gates and mixtures, and labels on both sides
EVERY = [
    *((name, "onnx", SLOW) for name in MODELS if name != "JointVAE with views"),  # exported by the command, below
    *((name, "torch_export", [] if name in FEW else SLOW) for name in MODELS),
]


def images(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(0, 256, (n, *SHAPE), dtype=np.uint8)


def onnx_run(file: Path, **inputs: np.ndarray) -> Outputs:
    session = onnxruntime.InferenceSession(file)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def program_run(file: Path, **inputs: np.ndarray) -> Outputs:
    outputs = torch.export.load(file).module()(**{name: torch.from_numpy(value) for name, value in inputs.items()})
    return {name: value.detach().numpy() for name, value in outputs.items()}


RUNS: dict[str, Callable[..., Outputs]] = {"onnx": onnx_run, "torch_export": program_run}


def assert_same(found: np.ndarray, expected: Tensor) -> None:
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-5)


def model_inputs(model: VAE, n: int) -> tuple[dict[str, np.ndarray], Tensor, Tensor | None]:
    """Inputs of the encoder, and the same as the model takes them; every third label is unknown."""
    bytes_ = images(n)
    x = torch.from_numpy(bytes_.astype(np.float32) / 255)
    if not getattr(model, "labels_in_encoder", False):
        return {"images": bytes_}, x, None
    labels = np.arange(n)[:, None] % 3 - 1
    return {"images": bytes_, "labels": labels}, x, torch.from_numpy(np.where(labels < 0, np.nan, labels)).float()


@pytest.mark.parametrize(("name", "kind"), [pytest.param(n, k, marks=m, id=f"{k}, {n}") for n, k, m in EVERY])
def test_graphs_compute_what_the_model_computes(name: str, kind: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    gaps = vaezoo.export(model, tmp_path, kind)
    assert [path.name for path in gaps] == [f"encoder{FORMATS[kind]}", f"decoder{FORMATS[kind]}"]
    assert max(gaps.values()) < 1e-5
    check_graphs(model, tmp_path, kind)
    check_no_paths(tmp_path)


def check_graphs(model: VAE, folder: Path, kind: str) -> None:
    encoder, decoder = (folder / f"{half}{FORMATS[kind]}" for half in ("encoder", "decoder"))
    for n in (1, 7):
        inputs, x, y = model_inputs(model, n)
        outputs = RUNS[kind](encoder, **inputs)
        assert_same(outputs["codes"], model.represent(x, y))
        again = RUNS[kind](decoder, latents=outputs["latents"])
        assert_same(again["images"], model.reconstruct(x, y))
        with torch.no_grad():
            posterior = model.encode(x, y)
        for group in set(model.latents) - set(model.decoded):
            assert_same(outputs[group], posterior[group].code())
        if isinstance(model, vaezoo.LaRVAE):
            assert_same(outputs["labels"], model.infer_labels(x))
        if isinstance(model, vaezoo.WeLaVAE):
            assert np.array_equal(again["labels"].argmax(1), model.classify(x, y)[:, 0])
            assert_same(again["labels"].sum(1), torch.ones(n))


def check_no_paths(folder: Path) -> None:
    """Files name nothing of the machine that wrote them."""
    for file in folder.iterdir():
        content = file.read_bytes()
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                content = b"".join(archive.read(name) for name in archive.namelist())
        assert not re.search(rb"[a-z_]{4}\.py", content)
        assert str(ROOT).encode() not in content


@models
def test_safetensors_rebuild_the_model(make: Callable[[], VAE], tmp_path: Path) -> None:
    """What `metadata.json` names, with the weights of both files, is the model."""
    model = make().eval()
    vaezoo.export(model, tmp_path, "safetensors")
    built_from = json.loads((tmp_path / "metadata.json").read_text())["built_from"]
    again = find(VAE, built_from["class_path"])(**built_from["init_args"]).eval()
    halves = [safetensors.torch.load_file(tmp_path / f"{half}.safetensors") for half in ("encoder", "decoder")]
    assert not set(halves[0]) & set(halves[1])
    assert all(name.startswith("decoder.") for name in halves[1])
    missing = again.load_state_dict(halves[0] | halves[1], strict=False).missing_keys
    assert all(name.startswith(("regularizers.", "step")) for name in missing)
    _, x, y = model_inputs(model, 3)
    assert torch.equal(again.represent(x, y), model.represent(x, y))
    assert torch.equal(again.reconstruct(x, y), model.reconstruct(x, y))


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> tuple[VAE, Path]:
    """A run of JointVAE, exported to ONNX by the command."""
    folder = tmp_path_factory.mktemp("joint")
    model = MODELS["JointVAE with views"]().eval()
    model.step.fill_(12)
    vaezoo.save(model, folder / "run/checkpoints/last.ckpt")
    (folder / "run/config.yaml").write_text("{}")
    assert run(["export", str(folder / "run")]) == 0
    return model, folder / "run" / "export"


def test_onnx_graphs_compute_what_the_model_computes(joint: tuple[VAE, Path]) -> None:
    check_graphs(*joint, "onnx")
    check_no_paths(joint[1])


def test_onnx_files_say_what_they_are(joint: tuple[VAE, Path]) -> None:
    model, folder = joint
    assert sorted(path.name for path in folder.iterdir()) == ["decoder.onnx", "encoder.onnx"]
    for half in ("encoder", "decoder"):
        proto = onnx.load(folder / f"{half}.onnx")
        onnx.checker.check_model(proto, full_check=True)
        facts = {prop.key: prop.value for prop in proto.metadata_props}
        assert json.loads(facts["unit_names"]) == model.unit_names
        assert model.unit_names == [*(f"z_{i}" for i in range(4)), "c_0_0", "c_0_1", "c_0_2"]
        assert (facts["model"], facts["step"], facts["vaezoo"]) == ("JointVAE", "12", vaezoo.__version__)
        assert json.loads(facts["image_shape"]) == list(SHAPE)
        assert json.loads(facts["label_names"]) == []
        assert json.loads(facts["groups"])[1]["prior"] == {"kind": "categorical", "probabilities": [[1 / 3] * 3]}
        shapes = [value.type.tensor_type.shape.dim[0].dim_param for value in (*proto.graph.input, *proto.graph.output)]
        assert set(shapes) == {"batch"}


def test_the_example_in_the_docs_runs_without_vaezoo(joint: tuple[VAE, Path]) -> None:
    model, folder = joint
    (code,) = re.findall(r"^```py\n(.*?)^```$", (ROOT / "docs" / "export.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len([line for line in code.splitlines() if line]) == 10
    end = "import sys; assert not {'vaezoo', 'torch'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", code + end], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    units, least, most = re.fullmatch(r"{(.*)} (\S+) (\S+)\n", done.stdout).groups()  # type: ignore[union-attr]
    found = {name: float(value) for name, value in re.findall(r"'(\w+)': np\.float32\((.*?)\)", units)}
    expected = model.represent(torch.zeros(1, *SHAPE))[0]
    assert found == pytest.approx(dict(zip(model.unit_names, expected.tolist(), strict=True)), abs=1e-5)
    again = model.reconstruct(torch.zeros(1, *SHAPE))
    assert (float(least), float(most)) == pytest.approx((again.min().item(), again.max().item()), abs=1e-5)


@pytest.fixture
def blobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of WeLaVAE on blobs, whose labels have names."""
    monkeypatch.chdir(tmp_path)
    vaezoo.save(vaezoo.WeLaVAE((1, 64, 64), [4, 4], network=NETWORK), tmp_path / "run/checkpoints/best.ckpt")
    config = {"data": {"class_path": "BlobsDataModule", "init_args": {"bins": 4}}}
    (tmp_path / "run/config.yaml").write_text(yaml.safe_dump(config))
    return tmp_path / "run"


def test_the_command_names_labels_after_the_data(blobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", str(blobs), "--format", "safetensors"]) == 0
    said = capsys.readouterr().out
    for name in ("encoder", "decoder"):
        assert f"{blobs / 'export' / name}.safetensors: verified by a model built anew, batches of 1, 2, 7, " in said
    facts = json.loads((blobs / "export/metadata.json").read_text())
    assert facts["label_names"] == ["angle", "distance"]
    assert facts["label_sizes"] == [4, 4]
    assert facts["graphs"]["encoder"]["inputs"] == {"images": "uint8 (batch, 1, 64, 64)", "labels": "int64 (batch, 2)"}
    assert facts["graphs"]["decoder"]["outputs"]["labels"] == "float32 (batch, 8)"


def test_labels_are_numbered_if_the_data_does_not_tell(blobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (blobs / "config.yaml").unlink()
    assert run(["export", str(blobs / "checkpoints/best.ckpt"), "--format=safetensors"]) == 0
    assert (
        f"labels are called label_0 and so on: {blobs} holds no config.yaml that names the data: give --data"
        in capsys.readouterr().out
    )
    assert json.loads(Path("export/metadata.json").read_text())["label_names"] == ["label_0", "label_1"]
    code, line = attempt(["export", str(blobs), "--format=safetensors", "--data=BlobDataModule"])
    assert code == 2
    assert "did you mean 'BlobsDataModule'?" in line
    options = ["--output=named", "--data=BlobsDataModule", "--data.bins=4"]
    assert run(["export", str(blobs), "--format=safetensors", *options]) == 0
    assert json.loads(Path("named/metadata.json").read_text())["label_names"] == ["angle", "distance"]


class OneHot:
    """Data whose labels are one-hot."""

    labelled_names, label_sizes = ("shape", "size"), (2, 1)


def test_names_of_labels_that_a_model_reads_as_numbers() -> None:
    model = MODELS["LaRVAE"]()
    assert label_names_of(OneHot(), model) == ["shape_0", "shape_1", "size_0"]
    assert label_names_of(object(), model) == []
    assert export_facts(model)["label_names"] == ["label_0", "label_1", "label_2"]
    with pytest.raises(ValueError, match="label_names a, b: LaRVAE has 3 labels: name each"):
        export_facts(model, ["a", "b"])


def test_facts_hold_the_learnt_mixture() -> None:
    model = MODELS["PartedVAE of two variables"]()
    assert isinstance(model, vaezoo.PartedVAE)
    facts = export_facts(model, ["digit", "style"])
    assert facts["label_names"] == ["digit", "style"]
    assert facts["label_sizes"] == [3, 2]
    priors = {group["name"]: group["prior"] for group in facts["groups"]}
    assert priors["z"] == {"kind": "normal"}
    assert priors["c"] == {"kind": "categorical", "probabilities": [[0.2, 0.3, 0.5], [0.9, 0.1]]}
    for k, component in enumerate(model.mixture.components()):
        torch.testing.assert_close(torch.tensor(priors["u"]["mean"][k]), component.mean.detach())
        torch.testing.assert_close(torch.tensor(priors["u"]["std"][k]).square().log(), component.logvar.detach())


def test_logits_of_labels_become_labels() -> None:
    from vaezoo.sharing.export_graphs import EncoderGraph

    model = vaezoo.LaRVAE(SHAPE, 3, 2, tau=0.0, label_loss="bce", network=NETWORK).eval()
    with torch.no_grad():
        outputs = EncoderGraph(model)(torch.from_numpy(images(4)))
    torch.testing.assert_close(outputs["labels"], outputs["codes"][:, :3].sigmoid())


class Shifted(vaezoo.BetaVAE):
    """Its codes depend on an attribute that neither arguments nor weights tell."""

    shift = 0.0

    def encode(self, x: Tensor, y: Tensor | None = None) -> dict[str, Any]:
        return super().encode(x + self.shift)


class Choosing(vaezoo.BetaVAE):
    """Its encoder looks at values, which no graph can."""

    def encode(self, x: Tensor, y: Tensor | None = None) -> dict[str, Any]:
        return super().encode(x if x.mean() > 0.5 else 1 - x)


def test_an_export_that_differs_is_an_error_and_leaves_no_file(tmp_path: Path) -> None:
    model = Shifted(SHAPE, 4, network=NETWORK)
    model.shift = 0.5
    message = (
        r"encoder.safetensors: output 'codes' of a batch of 1 differs from the model's by \d\.\de-0\d, more than 1e-05"
    )
    with pytest.raises(ExportError, match=message):
        vaezoo.export(model, tmp_path / "new", "safetensors")
    assert not (tmp_path / "new").exists()


def test_a_model_that_cannot_be_traced_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="the encoder of Choosing cannot be traced"):
        vaezoo.export(Choosing(SHAPE, 4, network=NETWORK), tmp_path / "new", "torch_export")
    assert not (tmp_path / "new").exists()


def test_the_model_stays_as_it_is(tmp_path: Path) -> None:
    model = MODELS["BetaVAE"]().double().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    noise = torch.random.get_rng_state()
    vaezoo.export(model, tmp_path, "safetensors")
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(value.dtype == before[name].dtype for name, value in model.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), noise)


@pytest.mark.parametrize("missing", ["onnx", "onnxscript", "onnxruntime"])
def test_a_missing_package_is_one_line(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, missing, None)
    vaezoo.save(MODELS["BetaVAE"](), tmp_path / "model.ckpt")
    code, line = attempt(["export", "model.ckpt"])
    assert code == 1
    assert line == f"vaezoo: error: ONNX needs {missing}: pip install 'vaezoo[export]'"
    assert attempt(["export", "model.ckpt", "--format=safetensors"]) == (0, "")


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["absent.ckpt", "--format=safetensors"], 1, "no checkpoint at absent.ckpt"),
        (["cut.ckpt", "--format=safetensors"], 1, "cut.ckpt is damaged"),
        (["model.ckpt", "--format=onxx"], 2, "did you mean 'onnx'?"),
        ([], 2, "vaezoo export needs CHECKPOINT"),
    ],
)
def test_wrong_input_is_one_line(
    args: list[str], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    vaezoo.save(MODELS["BetaVAE"](), tmp_path / "model.ckpt")
    Path("cut.ckpt").write_bytes(Path("model.ckpt").read_bytes()[:-100])
    found, line = attempt(["export", *args])
    assert found == code
    assert message in line
    assert not Path("export").exists()


def test_an_unknown_format_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="format must be one of onnx, torch_export, safetensors, not 'tflite'"):
        vaezoo.export(MODELS["BetaVAE"](), tmp_path, "tflite")  # type: ignore[arg-type]
