"""Checkpoints, configurations and run folders of strangers: nothing in them runs, and nothing is imported for them."""

import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
import yaml

import vaezoo
from tests.helpers.datasets import shapes3d
from tests.helpers.harness import attempt
from vaezoo.models import BetaVAE
from vaezoo.nn.latents import LatentGroup
from vaezoo.nn.networks import DenseNetwork, Network
from vaezoo.regularizers import Regularizer

DATA = {"class_path": "BlobsDataModule", "init_args": {"samples": 1, "val_size": 30, "test_size": 30, "batch_size": 2}}
SPY = "import pathlib\npathlib.Path({!r}).touch()\nfrom datamodules import BlobsDataModule as Spy\n"
TAG = "!!python/object/apply:os.mkdir ['{}']"


class Trap:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.trace,)


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that an attack would make; `spy`, a module that makes it, can be imported from here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "spy", raising=False)
    Path("spy.py").write_text(SPY.format(str(tmp_path / "trace")))
    return tmp_path / "trace"


@pytest.fixture
def folder(trace: Path) -> Path:
    """A run as vaezoo leaves it."""
    folder = trace.parent / "run"
    (folder / "checkpoints").mkdir(parents=True)
    model = BetaVAE((1, 64, 64), latent_dim=2, network=DenseNetwork([4], [4]))
    hparams = {**model.hparams}
    saved = {"state_dict": model.state_dict(), "hyper_parameters": hparams, "model_class": "vaezoo.models.BetaVAE"}
    saved |= {"pytorch-lightning_version": "2.6.0", "model_class": model.spec["class_path"], "epoch": 0}
    torch.save(saved | {"global_step": 0, "loops": {}, "callbacks": {}}, folder / "checkpoints" / "last.ckpt")
    (folder / "config.yaml").write_text(yaml.safe_dump({"data": DATA}))
    return folder


def change(folder: Path, **entries: Any) -> None:
    path = folder / "checkpoints" / "last.ckpt"
    torch.save(torch.load(path, weights_only=True) | entries, path)


COMMANDS = {
    "evaluate": ["--ckpt_path=run/checkpoints/last.ckpt", "--metrics=mig_20", "--resamples=0"],
    "traverse": ["--ckpt_path=run/checkpoints/last.ckpt", "--output=drawn"],
    "report": ["run"],
}
FIT = ["--model=BetaVAE", "--model.latent_dim=2", "--data=BlobsDataModule", "--trainer.fast_dev_run=true"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_run_itself_works(command: str, folder: Path) -> None:
    assert attempt([command, *COMMANDS[command]]) == (0, "")


@pytest.mark.parametrize("command", [*COMMANDS, "fit", "load"])
@pytest.mark.parametrize("key", ["state_dict", "hyper_parameters", "model_class", "extra"])
def test_a_pickle_in_a_checkpoint(command: str, key: str, folder: Path, trace: Path) -> None:
    change(folder, **{key: Trap(trace)})
    if command == "load":
        with pytest.raises(ValueError, match="nothing in it was executed"):
            vaezoo.load(folder / "checkpoints" / "last.ckpt")
    elif command == "report":  # which says so on the page
        assert attempt(["report", "run"]) == (0, "")
        assert "nothing in it was executed" in Path("report.html").read_text()
    else:
        args = [*FIT, "--ckpt_path=run/checkpoints/last.ckpt"] if command == "fit" else COMMANDS[command]
        code, line = attempt([command, *args])
        assert code != 0
        assert "nothing in it was executed" in line
    assert not trace.exists()


ATTACKS: dict[str, Any] = {
    "class": {"model_class": "spy.Spy"},
    "function": {"model_class": "os.system"},
    "network": {"hyper_parameters": {"image_shape": [1, 64, 64], "network": {"class_path": "spy.Spy"}}},
    "regularizer": {"hyper_parameters": {"image_shape": [1, 64, 64], "regularizers": {"a": {"class_path": "spy.Spy"}}}},
    "kind": {"hyper_parameters": {"image_shape": [1, 64, 64], "regularizers": {"a": {"class_path": "DenseNetwork"}}}},
    # Lightning's own way to build a model that its command line has made: it imports every class that is named.
    "instantiator": {
        "hyper_parameters": {
            "_instantiator": "lightning.pytorch.cli.instantiate_module",
            "image_shape": [1, 64, 64],
            "network": {"class_path": "spy.Spy"},
        }
    },
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_checkpoint_names_only_classes_that_are_there(attack: str, folder: Path, trace: Path) -> None:
    change(folder, **ATTACKS[attack])
    with pytest.raises(ValueError, match="is not an imported"):
        vaezoo.load(folder / "checkpoints" / "last.ckpt")
    code, _ = attempt(["evaluate", *COMMANDS["evaluate"]])
    assert code != 0
    assert not trace.exists()
    assert "spy" not in sys.modules


@pytest.mark.parametrize("base", [Network, Regularizer, LatentGroup, vaezoo.VAE])
@pytest.mark.parametrize(
    "name", ["os.system", "subprocess.Popen", "builtins.eval", "spy.Spy", "Callback", "BlobsDataModule"]
)
def test_specs_build_their_own_kind_alone(base: Any, name: str, trace: Path) -> None:
    with pytest.raises(ValueError, match="is not an imported"):
        base.build({"class_path": name, "init_args": {}})
    assert not trace.exists()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "data", ["spy.Spy", {"class_path": "spy.Spy"}, {"class_path": "os.system"}, {"class_path": "BetaVAE"}]
)
def test_a_run_folder_names_only_data_that_is_there(command: str, data: Any, folder: Path, trace: Path) -> None:
    (folder / "config.yaml").write_text(yaml.safe_dump({"data": data}))
    code, _ = attempt([command, *COMMANDS[command]])
    assert (code == 0) == (command == "report")  # which draws from the prior and notes why
    assert not trace.exists()
    assert "spy" not in sys.modules


@pytest.mark.parametrize("command", COMMANDS)
def test_arguments_in_a_run_folder_are_plain(command: str, folder: Path, trace: Path) -> None:
    nested = DATA | {"init_args": {"data_dir": {"class_path": "spy.Spy"}}}
    (folder / "config.yaml").write_text(yaml.safe_dump({"data": nested}))
    code, _ = attempt([command, *COMMANDS[command]])
    assert (code == 0) == (command == "report")
    assert not trace.exists()


def test_a_configuration_of_ones_own_may_name_ones_own_classes(trace: Path) -> None:
    """The difference is on purpose: what --config and --data name is the user's own wish."""
    assert attempt(["fit", *FIT[:2], "--data=spy.Spy", "--data.batch_size=2", "--trainer.fast_dev_run=true"]) == (0, "")
    assert trace.exists()


@pytest.mark.parametrize("where", ["--config", "evaluate", "traverse", "report", "study"])
def test_yaml_builds_no_objects(where: str, folder: Path, trace: Path) -> None:
    text = f"model: BetaVAE\ndata: {TAG.format(trace)}\n"
    (folder / "config.yaml").write_text(text)
    own = {"--config": ["fit", "--config=run/config.yaml"], "study": ["study", "run/config.yaml", "--dry_run"]}
    args = own[where] if where in own else [where, *COMMANDS[where]]
    code, line = attempt(args)
    assert (code == 0) == (where == "report")
    assert where == "report" or "YAML" in line
    assert not trace.exists()


EXPECTED = {"model": "BetaVAE", "data": "BlobsDataModule", "callbacks": "SavePictures", "logger": "CSVLogger"}
PLACES = {
    "model": "model={}",
    "data": "data={}",
    "network": "model.network={}",
    "regularizers": 'model.regularizers={{"a": "{}"}}',
    "callbacks": "trainer.callbacks={}",
    "logger": "trainer.logger={}",
}


@pytest.mark.parametrize(
    "name", ["os.system", "subprocess.Popen", "builtins.eval", "lightning.pytorch.callbacks.Timer", "KL"]
)
@pytest.mark.parametrize("place", PLACES)
def test_a_class_of_another_kind_is_not_made(
    place: str, name: str, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (place, name) in (("callbacks", "lightning.pytorch.callbacks.Timer"), ("regularizers", "KL")):
        pytest.skip("the right kind")
    monkeypatch.setattr("os.system", lambda *args: trace.touch())
    base = [option for option in FIT if not option.startswith(f"--{place}=")]
    code, line = attempt(["fit", *base, f"--{PLACES[place].format(name)}"])
    assert code != 0
    assert place in line, line
    assert not trace.exists()


@pytest.mark.parametrize("where", ["images", "labels", "attribute"])
def test_objects_in_hdf5(where: str, tmp_path: Path) -> None:
    import pickle

    path, trap = shapes3d.write(tmp_path), np.void(pickle.dumps(Trap(tmp_path / "trace")))
    with h5py.File(path, "a") as file:
        if where == "attribute":
            file["images"].attrs["names"] = trap
        else:
            del file[where]
            file.create_dataset(where, data=np.array(["x"], dtype=object), dtype=h5py.string_dtype())
            file[where].attrs["trap"] = trap
    data = shapes3d.Small(data_dir=tmp_path, source="file")
    if where == "attribute":
        data.prepare_data()
    else:
        with pytest.raises(ValueError, match=f"{where} is object"):
            data.prepare_data()
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize("command", ["evaluate", "traverse"])
def test_a_run_cannot_have_a_module_imported_and_the_user_can(command: str, folder: Path, trace: Path) -> None:
    (folder / "config.yaml").write_text(yaml.safe_dump({"data": {"class_path": "spy.Spy"}}))
    code, line = attempt([command, *COMMANDS[command]])
    assert code == 1
    assert "'spy.Spy' is not an imported ImageDataModule" in line
    assert "--import MODULE" in line
    assert "spy" not in sys.modules
    assert not trace.exists()
    code, _ = attempt([command, *COMMANDS[command], "--import=spy"])
    assert code == 0
    assert trace.exists()
