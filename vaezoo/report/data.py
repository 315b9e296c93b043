"""The first images of a run, from the datamodule that its configuration names."""

import json
from typing import Any

import torch
from jsonargparse import ArgumentParser
from lightning.pytorch import LightningDataModule

from vaezoo.report.runs import Run
from vaezoo.report.strips import Images
from vaezoo.runs.loading import data_settings
from vaezoo.types import Batch

IMAGES = 64


class RunImages:
    """Gives the first validation images of runs, or training images where nothing is held out.

    Runs with the same data share them.

    Args:
        data_class: Base of the datamodules to choose from.
    """

    def __init__(self, data_class: type[LightningDataModule]) -> None:
        self.data_class = data_class
        self.parser = ArgumentParser(exit_on_error=False)
        self.parser.add_subclass_arguments(data_class, "data")
        self._known: dict[str, Images | Exception] = {}

    def __call__(self, run: Run) -> Images:
        """Return at most 64 images.

        Raises:
            Exception: Whatever keeps the data from being opened, files that are not here above all.
        """
        settings = data_settings(run.config, self.data_class)
        key = json.dumps(settings, sort_keys=True, default=str)
        if key not in self._known:
            try:
                self._known[key] = self._first(settings)
            except Exception as error:  # once for each data, not for each run
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, Exception):
            raise found
        return found

    def _first(self, settings: dict[str, Any]) -> Images:
        arguments = dict(settings["init_args"])
        arguments |= {"num_workers": 0, "device_resident": False}  # a few images need neither
        if "download" in arguments:
            arguments["download"] = False  # a report looks at what is here
        config = self.parser.parse_object({"data": {**settings, "init_args": arguments}})
        data: LightningDataModule = self.parser.instantiate(config).data
        data.prepare_data()
        data.setup("validate")
        held_out = data.val_dataloader()
        batch = next(iter(held_out or data.train_dataloader()))
        batch = data.on_after_batch_transfer(data.transfer_batch_to_device(batch, torch.device("cpu"), 0), 0)
        return Images(Batch(*(field[:IMAGES] for field in batch)), "validation" if held_out else "training")
