"""The real command line's parser, without anything made."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from jsonargparse import Namespace
from lightning.pytorch.cli import ArgsType, LightningArgumentParser

from datamodules import ImageDataModule
from vaezoo.cli import experiments
from vaezoo.cli.commands import OWN_COMMANDS
from vaezoo.cli.experiments import name_to_path
from vaezoo.cli.main import COMMANDS  # imports every class that a configuration may name
from vaezoo.cli.trainer import ZooCLI
from vaezoo.evaluation import command as evaluate
from vaezoo.explorer import command as explore
from vaezoo.metrics.arguments import read_scores
from vaezoo.models import VAE
from vaezoo.pictures import traversals
from vaezoo.report import command as report
from vaezoo.runs.data import split_data_options
from vaezoo.runs.options import CommandParser
from vaezoo.sharing import command as sharing, export
from vaezoo.study import command as study, reproduce
from vaezoo.tracking import dashboard


class ParsedError(Exception):
    """Carries the parser out of the command line before anything is made."""


class DryCLI(ZooCLI):
    """Stops before it parses."""

    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        raise ParsedError(self._parsers)


@cache
def lightning_parser(command: str) -> LightningArgumentParser:
    """The parser of what follows `vaezoo fit`, or validate, test or predict.

    With the one of `vaezoo` around it, parsing takes twice as long.
    """
    quiet: dict[str, Any] = {"exit_on_error": False}
    options = {**quiet, command: dict(quiet)}
    try:
        DryCLI(VAE, ImageDataModule, subclass_mode_model=True, subclass_mode_data=True, parser_kwargs=options, args=[])
    except ParsedError as caught:
        parser: LightningArgumentParser
        (parser,) = caught.args[0]
        return parser
    raise AssertionError("the command line did not parse")


def fit_parser() -> LightningArgumentParser:
    """The parser of what follows `vaezoo fit`."""
    return lightning_parser("fit")


def command_parser(name: str) -> CommandParser:
    """The parser of one of vaezoo's own commands."""
    return {
        "dashboard": dashboard._parser,
        "evaluate": evaluate._parser,
        "experiments": experiments._parser,
        "export": export._parser,
        "explore": explore._parser,
        "figure": traversals._figure_parser,
        "pretrained": sharing._pretrained_parser,
        "report": report._parser,
        "reproduce": reproduce._parser,
        "share": sharing._share_parser,
        "study": study._parser,
        "traverse": traversals._parser,
    }[name]()


@cache
def parsed(config: Path) -> Namespace:
    """An experiment as `vaezoo fit` reads it; nobody may change it."""
    return fit_parser().parse_args([f"--config={config}"])


def check_command(words: list[str]) -> None:
    """Fails unless the command has these options and values; what stands for a user's file is not looked for."""
    name, *args = words
    if "--import" in args or "…" in args:  # classes of the reader's own; a command cut short
        assert name in {*COMMANDS, *OWN_COMMANDS}
    elif name in COMMANDS:
        given = [re.sub(r"^(RUN|\w+)/config\.yaml$", "experiments/betavae_3dshapes.yaml", arg) for arg in args]
        given = [arg for arg in given if arg not in ("--print_config", "--help")]
        helps = [i for i, arg in enumerate(given) if arg.endswith(".help")]
        given = [arg for i, arg in enumerate(given) if i not in helps and i - 1 not in helps]
        if given:
            lightning_parser(name).parse_args(name_to_path(given))
    elif name.startswith("--"):
        assert name in ("--help", "--version", "--print_completion")
    elif "--help" not in args:
        options = command_parser(name).parse_args(split_data_options(args)[0])
        if name == "evaluate":
            read_scores(options.metrics or ())
