"""The real command line's parser, without anything made."""

from typing import Any

from lightning.pytorch.cli import ArgsType, LightningArgumentParser

from datamodules import ImageDataModule
from vaezoo.cli.main import COMMANDS
from vaezoo.cli.trainer import ZooCLI
from vaezoo.models import VAE


class ParsedError(Exception):
    """Carries the parser out of the command line before anything is made."""


class DryCLI(ZooCLI):
    """Stops before it parses."""

    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        raise ParsedError(parser)


def command_line_parser() -> LightningArgumentParser:
    """The parser of `vaezoo fit` and the like."""
    quiet: dict[str, Any] = {"exit_on_error": False}
    options = {**quiet, **dict.fromkeys(COMMANDS, quiet)}
    try:
        DryCLI(VAE, ImageDataModule, subclass_mode_model=True, subclass_mode_data=True, parser_kwargs=options, args=[])
    except ParsedError as caught:
        parser: LightningArgumentParser = caught.args[0]
        return parser
    raise AssertionError("the command line did not parse")
