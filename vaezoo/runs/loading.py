"""Load models from checkpoints, and the data of their runs, without executing anything in them."""

from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch import LightningDataModule

from vaezoo.models import VAE
from vaezoo.models.lightning_private import load_as
from vaezoo.runs.checkpoint_io import read_checkpoint, write_checkpoint
from vaezoo.runs.folder import RunFolder
from vaezoo.specs import find


def load(path: str | Path, map_location: Any = "cpu") -> VAE:
    """Load a model of any class from a checkpoint.

    Reads only tensors and plain data; nothing in the file is executed. A damaged file raises an error. Import your own
    model classes first.

    Args:
        path: A Lightning checkpoint, or a folder of `save_pretrained`.
        map_location: Device to load to, as in `torch.load`.
    """
    path = RunFolder(Path(path)).weights if Path(path).is_dir() else Path(path)
    checkpoint = read_checkpoint(path, mmap=True)
    if "model_class" not in checkpoint:
        raise ValueError(f"{path} was not written by a vaezoo model; use its class's load_from_checkpoint")
    model_class = find(VAE, checkpoint["model_class"])
    if path.name != RunFolder(path.parent).weights.name:
        return load_as(model_class, path, map_location).eval()
    _require_fitting(model_class, checkpoint, RunFolder(path.parent))
    file = BytesIO()
    torch.save(checkpoint, file)  # Lightning builds a model from a file alone
    file.seek(0)
    return load_as(model_class, file, map_location).eval()


def save(model: VAE, path: str | Path) -> None:
    """Save a model, trained without a Trainer, as a checkpoint for `load` and every command.

    Args:
        model: The model, e.g. `JointVAE.from_released("model.pt", "specs.json")`.
        path: The file, e.g. `mnist.ckpt`.
    """
    write_checkpoint(content_of(model), Path(path))


def content_of(model: VAE) -> dict[str, Any]:
    """What a checkpoint of a model holds, but for the state of its training."""
    checkpoint = {
        "state_dict": model.state_dict(),
        model.CHECKPOINT_HYPER_PARAMS_KEY: dict(model.hparams),
        "pytorch-lightning_version": lightning.__version__,
    }
    model.on_save_checkpoint(checkpoint)
    return checkpoint


def _require_fitting(model_class: type[VAE], checkpoint: dict[str, Any], folder: RunFolder) -> None:
    """Refuse a shared model whose arguments do not describe its weights, before memory is taken for them."""
    key = model_class.CHECKPOINT_HYPER_PARAMS_KEY
    state, arguments = checkpoint["state_dict"], checkpoint[key]
    try:
        with torch.device("meta"):  # shapes alone
            model = model_class(**arguments)
            model.on_load_checkpoint({**checkpoint, **deepcopy({key: arguments})})
    except Exception as error:  # whatever arguments of a stranger lead to
        raise ValueError(
            f"{folder.shared_config} does not describe a {model_class.__name__} of this version of vaezoo "
            f"({' '.join(str(error).split())[:300]})"
        ) from error
    own = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    given = {name: tuple(value.shape) for name, value in state.items()}
    if wrong := [name for name in sorted({*own, *given}) if own.get(name) != given.get(name)]:
        raise ValueError(
            f"{folder.weights} does not fit {folder.shared_config.name}: {wrong[0]} is {given.get(wrong[0])}, the "
            f"model's is {own.get(wrong[0])}: get the folder again"
        )


def data_settings(config: Any, data_class: type[LightningDataModule]) -> dict[str, Any]:
    """Data settings from a run's configuration, which is untrusted.

    Accepts only datamodule classes that are already imported: unlike `--data` and `--config`, a run's folder cannot
    trigger an import.

    Args:
        config: The configuration as read.
        data_class: Base of the datamodules to choose from.

    Raises:
        ValueError: It names no data, or an unknown class.
    """
    settings = config.get("data") if isinstance(config, dict) else None
    if not isinstance(settings, dict) or not isinstance(settings.get("class_path"), str):
        raise ValueError("the run's configuration names no data: give --data, say --data BlobsDataModule")
    known = find(data_class, settings["class_path"])
    arguments = settings.get("init_args") or {}
    if not isinstance(arguments, dict) or any(isinstance(value, dict) for value in arguments.values()):
        raise ValueError(f"the run's configuration gives {known.__name__} arguments that are not plain: give --data")
    return {"class_path": f"{known.__module__}.{known.__qualname__}", "init_args": arguments}
