"""The composition root: every command by its name, and one line for whatever goes wrong."""

import sys
from itertools import takewhile

from jsonargparse import ArgumentError
from lightning.pytorch.utilities import rank_zero_only
from lightning.pytorch.utilities.exceptions import SIGTERMException

from datamodules import ImageDataModule
from vaezoo.callbacks import NonFiniteError, SaveConfig
from vaezoo.cli.addresses import fetch_named
from vaezoo.cli.commands import OWN_COMMANDS
from vaezoo.cli.common import imported, split_common_options
from vaezoo.cli.console import console
from vaezoo.cli.errors import explain_argument
from vaezoo.cli.experiments import name_to_path
from vaezoo.cli.failures import explain
from vaezoo.cli.help import ending, parser_options
from vaezoo.cli.trainer import ZooCLI
from vaezoo.models import VAE
from vaezoo.runs.options import STRICT, KeepLines
from vaezoo.runs.resuming import NothingToDo
from vaezoo.text import printable

COMMANDS = ("fit", "validate", "test", "predict")
RUN_FIRST = ("figure", "explore", "report", "export", "share")
"""Commands whose first words are runs."""


def run(args: list[str]) -> int:
    """Run the command line; errors are one line unless --debug or VAEZOO_DEBUG asks for the traceback."""
    debug = False
    try:
        own, modules, debug = split_common_options(args)
        with console(debug), imported(modules):
            _run_command(run_first(fetch_named(own)))
    except NothingToDo as reason:
        print(printable(reason))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        raise  # `main` ends without a word
    except SystemExit as stop:
        if isinstance(stop.__context__, KeyboardInterrupt):  # before the first step
            return 130
        if isinstance(stop, SIGTERMException):
            return 143
        if not stop.code and {"-h", "--help"} & set(args):
            print(f"\n{ending(args[0])}")
        raise
    except ArgumentError as error:
        if debug:
            raise
        print(f"vaezoo: error: {printable(explain_argument(str(error)))}", file=sys.stderr)
        return 2
    except Exception as error:
        if debug:
            raise
        diverged = isinstance(error, NonFiniteError)
        if not (diverged and getattr(rank_zero_only, "rank", False)):  # raised on all ranks, and the first one says so
            print(f"vaezoo: error: {printable(explain(error))}", file=sys.stderr)
        return NonFiniteError.exit_code if diverged else 1
    return 0


def run_first(args: list[str]) -> list[str]:
    """The same command line; of commands that take runs without an option, `--ckpt_path RUN` is as good as `RUN`."""
    at = next((i for i, word in enumerate(args) if word.partition("=")[0] == "--ckpt_path"), None)
    if at is None or args[0] not in RUN_FIRST:
        return args
    _, equals, value = args[at].partition("=")
    words, later = list(takewhile(lambda word: not word.startswith("-"), args[at + 1 :])), args[at + 1 :]
    return [args[0], *([value] if equals else []), *words, *args[1:at], *later[len(words) :]]


def _run_command(args: list[str]) -> None:
    if args and args[0] in OWN_COMMANDS:
        OWN_COMMANDS[args[0]](args[1:])
        return
    if args and not args[0].startswith("-") and args[0] not in COMMANDS:
        raise ArgumentError(None, f"invalid choice: '{args[0]}' (choose from {', '.join([*COMMANDS, *OWN_COMMANDS])})")
    asked = args[:1] if args and args[0] in COMMANDS else COMMANDS
    ZooCLI(
        VAE,
        ImageDataModule,
        subclass_mode_model=True,
        subclass_mode_data=True,
        seed_everything_default=0,
        auto_configure_optimizers=False,
        save_config_callback=SaveConfig,
        parser_kwargs={
            **STRICT,
            **{name: {**STRICT, **parser_options(name)} for name in asked},
            "formatter_class": KeepLines,
        },
        args=name_to_path(args),
    )
