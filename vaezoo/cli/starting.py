"""What a fit starts from: its options, and whether a checkpoint belongs to the configuration."""

import json
from collections.abc import Sequence
from typing import Any

from jsonargparse import ArgumentError, Namespace
from lightning.pytorch.cli import LightningArgumentParser

from vaezoo.cli.callbacks import as_plain, settings_of
from vaezoo.models import VAE
from vaezoo.runs.resuming import differences
from vaezoo.specs import find, with_public_names

FROM_DATA = ("image_shape", "label_dim", "label_sizes")
"""Arguments of models that are taken from the data."""


def add_start_options(parser: LightningArgumentParser) -> None:
    """The options of a run's name and start."""
    parser.add_argument(
        "--name", type=str | None, default=None, help="What reports and W&B call the run; its folder keeps the time."
    )


def differing_settings(config: Namespace, checkpoint: dict[str, Any], model_alone: bool = False) -> list[str]:
    """In what the run of a checkpoint differs from a parsed configuration, in words.

    A first look, before data and model are built: what the data decides is left out.

    Args:
        config: The configuration of a command.
        checkpoint: The checkpoint.
        model_alone: Whether other data, batches or precision are no difference.
    """
    settings = {} if model_alone else settings_of(config)
    if settings.get("seed_everything") is True:  # any
        del settings["seed_everything"]
    if settings.get("data.source") == "auto":
        del settings["data.source"]
    given = config.model.get("init_args")
    arguments = _plain(given.as_dict() if given else {})
    for name in FROM_DATA:
        if arguments.get(name, 0) is None:
            del arguments[name]
    return differences(find(VAE, config.model.class_path), arguments, settings, checkpoint)


def _plain(value: Any) -> Any:
    """Arguments as checkpoints hold them."""
    return _with_arguments(with_public_names(json.loads(json.dumps(value, default=as_plain))))


def _with_arguments(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_arguments(item) for item in value]
    if not isinstance(value, dict):
        return value
    whole = {"init_args": {}} | value if "class_path" in value else value
    return {key: _with_arguments(item) for key, item in whole.items()}
