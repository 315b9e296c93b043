"""Load models from checkpoints, and the data of their runs, without executing anything in them."""

from pathlib import Path
from typing import Any

import lightning
from lightning.pytorch import LightningDataModule

from vaezoo.models import VAE
from vaezoo.models.lightning_private import load_as
from vaezoo.runs.checkpoint_io import read_checkpoint, write_checkpoint
from vaezoo.specs import find


def load(path: str | Path, map_location: Any = "cpu") -> VAE:
    """Load a model of any class from a checkpoint.

    Reads only tensors and plain data; nothing in the file is executed. A damaged file raises an error. Import your own
    model classes first.

    Args:
        path: A Lightning checkpoint.
        map_location: Device to load to, as in `torch.load`.
    """
    path = Path(path)
    checkpoint = read_checkpoint(path, mmap=True)
    if "model_class" not in checkpoint:
        raise ValueError(f"{path} was not written by a vaezoo model; use its class's load_from_checkpoint")
    return load_as(find(VAE, checkpoint["model_class"]), path, map_location).eval()


def save(model: VAE, path: str | Path) -> None:
    """Save a model, trained without a Trainer, as a checkpoint for `load` and every command.

    Args:
        model: The model, e.g. `JointVAE.from_released("model.pt", "specs.json")`.
        path: The file, e.g. `mnist.ckpt`.
    """
    checkpoint = {
        "state_dict": model.state_dict(),
        model.CHECKPOINT_HYPER_PARAMS_KEY: dict(model.hparams),
        "pytorch-lightning_version": lightning.__version__,
    }
    model.on_save_checkpoint(checkpoint)
    write_checkpoint(checkpoint, Path(path))


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
        raise ValueError("the run's config.yaml names no data: give --data, say --data BlobsDataModule")
    known = find(data_class, settings["class_path"])
    arguments = settings.get("init_args") or {}
    if not isinstance(arguments, dict) or any(isinstance(value, dict) for value in arguments.values()):
        raise ValueError(f"the run's config.yaml gives {known.__name__} arguments that are not plain: give --data")
    return {"class_path": f"{known.__module__}.{known.__qualname__}", "init_args": arguments}
