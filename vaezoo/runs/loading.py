"""What runs leave, read without executing any of it: models from checkpoints, and the data that they name."""

from pathlib import Path
from typing import Any

import lightning
from lightning.pytorch import LightningDataModule

from vaezoo.models import VAE
from vaezoo.models.lightning_private import load_as
from vaezoo.runs.checkpoint_io import read_checkpoint, write_checkpoint
from vaezoo.specs import find


def load(path: str | Path, map_location: Any = "cpu") -> VAE:
    """Load the model that a checkpoint holds, whatever its class.

    Only tensors and plain data are read; nothing in the file is executed, and a damaged one is an error. A model
    defined elsewhere must be imported first.

    Args:
        path: A checkpoint that Lightning wrote.
        map_location: Device to load to, as in `torch.load`.
    """
    path = Path(path)
    checkpoint = read_checkpoint(path, mmap=True)
    if "model_class" not in checkpoint:
        raise ValueError(f"{path} was not written by a vaezoo model; use its class's load_from_checkpoint")
    return load_as(find(VAE, checkpoint["model_class"]), path, map_location).eval()


def save(model: VAE, path: str | Path) -> None:
    """Write a model that no Trainer trained as a checkpoint that `load`, and every command, reads.

    Args:
        model: The model, say `JointVAE.from_released("model.pt", "specs.json")`.
        path: The file, say `mnist.ckpt`.
    """
    checkpoint = {
        "state_dict": model.state_dict(),
        model.CHECKPOINT_HYPER_PARAMS_KEY: dict(model.hparams),
        "pytorch-lightning_version": lightning.__version__,
    }
    model.on_save_checkpoint(checkpoint)
    write_checkpoint(checkpoint, Path(path))


def data_settings(config: Any, data_class: type[LightningDataModule]) -> dict[str, Any]:
    """The data that a run's configuration names, which may come from anyone.

    Only classes of data that are imported already are taken: a run's folder cannot have a module imported, as the
    user's own `--data` and `--config` can.

    Args:
        config: The configuration as read.
        data_class: Base of the datamodules to choose from.

    Raises:
        ValueError: It names no data, or none that is known.
    """
    settings = config.get("data") if isinstance(config, dict) else None
    if not isinstance(settings, dict) or not isinstance(settings.get("class_path"), str):
        raise ValueError("the run's config.yaml names no data: give --data, say --data BlobsDataModule")
    known = find(data_class, settings["class_path"])
    arguments = settings.get("init_args") or {}
    if not isinstance(arguments, dict) or any(isinstance(value, dict) for value in arguments.values()):
        raise ValueError(f"the run's config.yaml gives {known.__name__} arguments that are not plain: give --data")
    return {"class_path": f"{known.__module__}.{known.__qualname__}", "init_args": arguments}
