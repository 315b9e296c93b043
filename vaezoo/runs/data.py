"""The data of runs, from their configurations or from the command line."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace
from lightning.pytorch import LightningDataModule

from vaezoo.models.base import VAE
from vaezoo.runs.files import require_own_file
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.loading import data_settings
from vaezoo.runs.shared import read_shared_config

# A run may come from anyone: what it takes of this machine is the user's to say.
RESOURCES = ("num_workers", "device_resident", "download")
MOST_IMAGES = 256  # a batch


class RunData:
    """Opens the data of runs; runs that share data open it once.

    A run's configuration cannot set workers, device memory, downloads or large batches: only `args` can.

    Args:
        data_class: Base of the datamodules to choose from.
        args: Data options on the command line; they override the configuration.
        keep: What to keep of a datamodule after setup. Defaults to all of it.
    """

    def __init__(
        self,
        data_class: type[LightningDataModule],
        args: Sequence[str] = (),
        keep: Callable[[Any], Any] = lambda data: data,
    ) -> None:
        self.data_class, self.args, self.keep = data_class, args, keep
        self.parser = ArgumentParser(exit_on_error=False)
        self.parser.add_subclass_arguments(data_class, "data")
        self._known: dict[str, Any] = {}

    def of(self, run: RunFolder) -> tuple[Any, dict[str, Any]]:
        """What is kept of a run's data, and the settings of that data.

        Raises:
            Exception: Whatever keeps the data from being opened, files that are not here above all.
        """
        config = self._parsed(run)
        arguments = config.data.get("init_args")
        settings = {"class": config.data.class_path, "arguments": arguments.as_dict() if arguments else {}}
        key = json.dumps(settings, default=str)
        if key not in self._known:
            try:
                self._known[key] = self._opened(config)
            except Exception as error:  # once for each data, not for each run
                self._known[key] = error
        if isinstance(self._known[key], Exception):
            raise self._known[key]
        return self._known[key], json.loads(key)

    def unopened(self, run: RunFolder) -> Any:
        """A run's data as it is built, for what it knows before any image is read.

        Raises:
            Exception: Whatever keeps the data from being built.
        """
        return self.parser.instantiate(self._parsed(run)).data

    def _parsed(self, run: RunFolder) -> Namespace:
        return self.parser.parse_args([*self._configured(run), *self.args])

    def _configured(self, run: RunFolder) -> list[str]:
        if any(arg == "--data" or arg.startswith("--data=") for arg in self.args):
            return []
        settings = data_settings(_config(run), self.data_class)
        arguments = {name: value for name, value in settings["init_args"].items() if name not in RESOURCES}
        if "batch_size" in arguments and not (type(given := arguments["batch_size"]) is int and given <= MOST_IMAGES):
            arguments["batch_size"] = MOST_IMAGES
        return [f"--data={json.dumps({**settings, 'init_args': arguments})}"]

    def _opened(self, config: Namespace) -> Any:
        data = self.parser.instantiate(config).data
        data.prepare_data()
        data.setup(None)
        return self.keep(data)


def _config(run: RunFolder) -> Any:
    """What names the data of a run, or of a shared model."""
    if run.weights.is_file():
        require_own_file(run.shared_config, run.path)
        return read_shared_config(run.shared_config)
    if not run.config.is_file():
        raise FileNotFoundError(
            f"{run.path} holds no {run.config.name} that names the data: give --data, say --data BlobsDataModule"
        )
    return run.read_config()


def split_data_options(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command line into the command's options and those of the data, with their values."""
    own: list[str] = []
    data: list[str] = []
    target = own
    for arg in args:
        if arg.startswith("--"):
            target = data if arg.partition("=")[0].partition(".")[0] == "--data" else own
        target.append(arg)
    return own, data


def require_fitting_images(checkpoint: Path, model: VAE, data: Any) -> None:
    """Raise unless the images have the model's shape."""
    if tuple(model.image_shape) != tuple(data.image_shape):
        raise ValueError(
            f"{checkpoint} reads images of {tuple(model.image_shape)}, but {type(data).__name__} gives "
            f"{tuple(data.image_shape)}: name the data that it was trained on"
        )
