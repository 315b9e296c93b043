"""The data of checkpoints: that of their runs, or what the command line says."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from lightning.pytorch import LightningDataModule

from vaezoo.runs.files import read_yaml
from vaezoo.runs.loading import data_settings


class Sources:
    """Datamodules of checkpoints, each set up once.

    Args:
        data_class: Base of the datamodules to choose from.
        args: Options of the data on the command line.
    """

    def __init__(self, data_class: type[LightningDataModule], args: list[str]) -> None:
        self.args, self.data_class = args, data_class
        self.parser = ArgumentParser(exit_on_error=False)
        self.parser.add_subclass_arguments(data_class, "data")
        self._known: dict[str, tuple[Any, dict[str, Any]]] = {}

    def of(self, checkpoint: Path) -> tuple[Any, dict[str, Any]]:
        """The data of a run, as its configuration and the command line have it, and these settings."""
        named = any(arg == "--data" or arg.startswith("--data=") for arg in self.args)
        configured = [] if named else [f"--data={json.dumps(_configured(checkpoint, self.data_class))}"]
        args = [*configured, *self.args]
        config = self.parser.parse_args(args)
        arguments = config.data.get("init_args")
        settings = {"class": config.data.class_path, "arguments": arguments.as_dict() if arguments else {}}
        key = json.dumps(settings, default=str)
        if key not in self._known:
            data = self.parser.instantiate(config).data
            data.prepare_data()
            data.setup()
            self._known[key] = data, json.loads(key)
        return self._known[key]


def _configured(checkpoint: Path, data_class: type[LightningDataModule]) -> dict[str, Any]:
    for folder in (checkpoint.parent.parent, checkpoint.parent):
        if (folder / "config.yaml").is_file():
            return data_settings(read_yaml(folder / "config.yaml"), data_class)
    raise FileNotFoundError(
        f"{checkpoint.parent.parent} holds no config.yaml that names the data: give --data, say --data BlobsDataModule"
    )


def apart(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Options of the data apart from the others, with what follows each."""
    own: list[str] = []
    data: list[str] = []
    target = own
    for arg in args:
        if arg.startswith("--"):
            target = data if arg.partition("=")[0].partition(".")[0] == "--data" else own
        target.append(arg)
    return own, data
