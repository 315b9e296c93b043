"""What a fit starts from: its options, and whether a checkpoint belongs to the configuration."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from jsonargparse import ArgumentError, Namespace
from lightning.pytorch.cli import LightningArgumentParser

from vaezoo.callbacks.compile import LONG_RUN
from vaezoo.cli.callbacks import INIT_FROM, as_plain, settings_of
from vaezoo.models import VAE
from vaezoo.runs.checkpoint_io import OpenCheckpoint
from vaezoo.runs.last import resolve_last
from vaezoo.runs.options import checkpoint_in
from vaezoo.runs.resuming import (
    SETTINGS,
    differences,
    local_path,
    open_checkpoint,
    require_same_settings,
    require_unfinished,
    say,
)
from vaezoo.runs.warm_start import load_weights, require_loaded_encoder
from vaezoo.specs import find, with_public_names

FROM_DATA = ("image_shape", "label_dim", "label_sizes")
"""Arguments of models that are taken from the data."""


def add_start_options(parser: LightningArgumentParser) -> None:
    """The options of a run's name, start and steps."""
    parser.add_argument(
        "--name",
        type=str | None,
        default=None,
        help="Name of the run in reports and W&B; its folder is still named after the time.",
    )
    parser.add_argument(
        "--init_from",
        type=str | None,
        default=None,
        help="Checkpoint or run to initialise a new run from, as far as its weights fit. Not for resuming.",
    )
    parser.add_argument(
        "--freeze_encoder",
        type=bool,
        default=False,
        help="Freeze the encoder at the checkpoint's weights; train only the latent heads and the decoder.",
    )
    parser.add_argument(
        "--compile",
        type=bool | Literal["auto"],
        default="auto",
        help=f"Compile training steps; auto: if there is a compiler and the run has {LONG_RUN:,} or more batches left.",
    )


def check_start_options(args: Sequence[str], config: Namespace) -> None:
    """Refuse options that contradict each other. What a saved configuration says gives way to --ckpt_path.

    Args:
        args: The command line.
        config: What was made of it.
    """
    arguments: Any = config.model.get("init_args") or {}
    for name in ("image_shape", "label_sizes"):
        if arguments.get(name) is not None:
            raise ArgumentError(
                None,
                f'Parser key "model.{name}": it comes from the data: remove it, and set the options of the data',
            )
    given = {word.partition("=")[0] for word in args}
    if "--weights_only" in given:
        raise ArgumentError(
            None,
            "--weights_only does not load weights: use --init_from CKPT; checkpoints are always read safely",
        )
    checkpoint = config.get("ckpt_path")
    if "--init_from" in given and checkpoint not in (None, "last"):
        raise ArgumentError(
            None, "--init_from starts a new run from a checkpoint's weights, --ckpt_path resumes a run: give one"
        )
    if config.freeze_encoder and not config.init_from and not checkpoint:
        raise ArgumentError(None, "--freeze_encoder would freeze random weights: give --init_from CKPT as well")


def open_last(config: Namespace, command: str) -> OpenCheckpoint | None:
    """Find what `--ckpt_path last` means, and say so in the configuration; None where a fit starts afresh."""
    experiment = Path(config.runs_dir) / config.experiment
    model_alone = config.allow_changes or command != "fit"
    look = partial(differing_settings, config, model_alone=model_alone)
    opened, config.seed_everything = resolve_last(experiment, config.seed_everything, look)
    config.ckpt_path = str(opened.path) if opened else None
    if opened is None and command != "fit":
        raise FileNotFoundError(f"no checkpoint in {experiment}")
    if opened is not None and look(opened.content):
        say(f"no run in {experiment} has these settings; the nearest is {opened.path}")
    if opened is not None and not model_alone:
        _require_same_start(config, opened)
    return opened


def stop_if_complete(config: Namespace, opened: OpenCheckpoint) -> None:
    """End a fit that has nothing to do before data and model are built; `start_model` looks again.

    A run with other settings is another run, and no complete one.
    """
    if not differing_settings(config, opened.content, config.allow_changes):
        _require_unfinished(config, opened)


def start_model(model: VAE, config: Namespace, settings: dict[str, Any], opened: OpenCheckpoint | None) -> None:
    """Check that the run may continue, or load weights into a new one's model; freeze the encoder where asked to.

    Args:
        model: The model.
        config: The configuration of a fit.
        settings: What decides how the run goes on.
        opened: Checkpoint that the run continues from; it brings the weights.
    """
    if opened is not None:
        if not config.allow_changes:
            compared = {name: value for name, value in settings.items() if name != INIT_FROM}
            require_same_settings(compared, opened.content)
        _require_unfinished(config, opened)
        say(f"continuing from {opened.path}, step {opened.content['global_step']}")
    elif config.init_from:
        start = open_checkpoint(checkpoint_in(local_path(config.init_from)))
        assert start is not None
        if config.freeze_encoder:
            require_loaded_encoder(model, start)
        for line in load_weights(model, start):
            say(line)
    if config.freeze_encoder:
        model.encoder.requires_grad_(False)


def _require_same_start(config: Namespace, checkpoint: OpenCheckpoint) -> None:
    noted = checkpoint.content.get(SETTINGS)
    before = noted.get(INIT_FROM, config.init_from) if isinstance(noted, dict) else config.init_from
    if before != config.init_from:
        raise ValueError(
            f"{checkpoint.path} began with {_start(before)}, the configuration with {_start(config.init_from)}: "
            "give the same --init_from, or another --experiment to start a new run"
        )


def _require_unfinished(config: Namespace, opened: OpenCheckpoint) -> None:
    require_unfinished(opened, config.trainer.max_steps, config.trainer.max_epochs, config.allow_changes)


def _start(init_from: Any) -> str:
    return "random weights" if init_from is None else f"the weights of {init_from}"


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
