"""`vaezoo experiments`: the configurations that come with the package, listed, copied, and named as --config."""

import inspect
import re
from collections.abc import Sequence
from pathlib import Path

import yaml

from datamodules import ImageDataModule
from vaezoo.runs.experiments import SHIPPED, find_experiment, shipped
from vaezoo.runs.options import CommandParser
from vaezoo.specs import find
from vaezoo.text import aligned

EPILOG = """\
A name stands for its file: vaezoo fit --config NAME, vaezoo study NAME, vaezoo reproduce NAME. Needs files: "no" means
that images are drawn where files are missing, "download" that --data.download true fetches them, "yes" that you put
them into --data.data_dir."""
# A full stop before a capital or Greek letter, unless it ends an abbreviation.
_END = re.compile(r"(?<!\bFig)(?<!\bApp)(?<!\bSec)(?<!\bEq)(?<!\bal)\.(?=\s+[A-Zα-ω`]|$)")


def run_experiments(args: Sequence[str]) -> None:
    """List the shipped experiments, or copy one.

    Args:
        args: Command line after `vaezoo experiments`.
    """
    options = _parser().parse_args(list(args))
    if options.subcommand == "copy":
        _copy(options.copy.name, Path(options.copy.folder))
        return
    rows = [_row(path) for path in sorted(SHIPPED.glob("*.yaml"))]
    studies = [(path.stem, summary(path)) for path in sorted((SHIPPED / "studies").glob("*.yaml"))]
    first = aligned([("experiment", "model", "data", "needs files", "what it is"), *rows])
    print("\n".join([*first, "", *aligned([("study", "what it is"), *studies])]))


def name_to_path(args: Sequence[str]) -> list[str]:
    """A command line in which `--config NAME` is the path of the shipped file."""
    replaced: list[str] = []
    for word in args:
        option, equals, value = word.partition("=")
        if replaced and replaced[-1] in ("-c", "--config"):
            replaced.append(find_experiment(word))
        elif equals and option in ("-c", "--config"):
            replaced.append(f"{option}={find_experiment(value)}")
        else:
            replaced.append(word)
    return replaced


def summary(path: Path) -> str:
    """The first sentence of a file's header comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    header = lines[: next(i for i, line in enumerate(lines) if not line.startswith("#"))]
    return _END.split(" ".join(line.removeprefix("#").strip() for line in header))[0]


def _row(path: Path) -> tuple[str, ...]:
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    model, data = (config[section]["class_path"] for section in ("model", "data"))
    return path.stem, model, data.removesuffix("DataModule"), _needs_files(find(ImageDataModule, data)), summary(path)


def _needs_files(data: type[ImageDataModule]) -> str:
    if getattr(data, "source", "auto") != "file":  # "auto" draws, as "render" does
        return "no"
    constructors = [vars(cls)["__init__"] for cls in data.__mro__ if "__init__" in vars(cls)]
    can_fetch = any("download" in inspect.signature(constructor).parameters for constructor in constructors)
    return "download" if can_fetch else "yes"


def _copy(name: str, folder: Path) -> None:
    source = shipped(name)
    target = folder / source.name
    if target.exists():
        raise FileExistsError(f"{target} already exists: delete it, or copy to another folder")
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is no folder: make it first")
    target.write_bytes(source.read_bytes())
    print(f"written: {target} (vaezoo fit --config {target})")


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="vaezoo experiments",
        description="List the configurations that come with vaezoo.",
        epilog=EPILOG,
    )
    copy = CommandParser(description="Copy a configuration, to edit it.")
    copy.add_argument("name", type=str, help="Experiment, for example larvae_3dshapes.")
    copy.add_argument("folder", type=str, nargs="?", default=".", help="Destination. Defaults to the current folder.")
    parser.add_subcommands(required=False).add_subcommand("copy", copy)
    return parser
