"""The real command line's parser, without anything made."""

from functools import cache
from pathlib import Path
from typing import Any

from jsonargparse import Namespace
from lightning.pytorch.cli import ArgsType, LightningArgumentParser

import vaezoo.cli.main  # noqa: F401  # every class that a configuration may name
from datamodules import ImageDataModule
from vaezoo.cli.trainer import ZooCLI
from vaezoo.models import VAE


class ParsedError(Exception):
    """Carries the parser out of the command line before anything is made."""


class DryCLI(ZooCLI):
    """Stops before it parses."""

    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        raise ParsedError(self._parsers)


@cache
def fit_parser() -> LightningArgumentParser:
    """The parser of what follows `vaezoo fit`; with the one of `vaezoo` around it, parsing takes twice as long."""
    quiet: dict[str, Any] = {"exit_on_error": False}
    options = {**quiet, "fit": quiet}
    try:
        DryCLI(VAE, ImageDataModule, subclass_mode_model=True, subclass_mode_data=True, parser_kwargs=options, args=[])
    except ParsedError as caught:
        parser: LightningArgumentParser
        (parser,) = caught.args[0]
        return parser
    raise AssertionError("the command line did not parse")


@cache
def parsed(config: Path) -> Namespace:
    """An experiment as `vaezoo fit` reads it; nobody may change it."""
    return fit_parser().parse_args([f"--config={config}"])
