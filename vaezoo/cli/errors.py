"""One readable line for a wrong configuration, with the nearest right spelling."""

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import get_args

from jsonargparse import ArgumentError, Namespace
from lightning.pytorch import Callback, LightningDataModule, Trainer
from lightning.pytorch.loggers import Logger
from torch.optim import Optimizer

from vaezoo.cli.common import COMMON, no_module
from vaezoo.cli.help import example
from vaezoo.models import VAE
from vaezoo.nn.latents import LatentGroup
from vaezoo.nn.networks import Network
from vaezoo.regularizers import Regularizer
from vaezoo.specs import family
from vaezoo.text import did_you_mean, on_one_line

_OWN_KEYS = (
    "allow_changes",
    "ckpt_path",
    "config",
    "data",
    "experiment",
    "freeze_encoder",
    "init_from",
    "model",
    "name",
    "print_config",
    "runs_dir",
    "seed_everything",
    "trainer",
)


def explain_argument(message: str) -> str:
    """Boil down what jsonargparse says, often a nested list of everything it tried.

    Returns:
        The key, what is wrong with it and the nearest right spelling.
    """
    key = ".".join(re.findall(r'Parser key "([^"]+)"', message))
    for pattern, explain in _EXPLANATIONS.items():
        if match := re.search(pattern, message):
            text = explain(*match.groups())
            break
    else:
        text = _first_complaint(message)
    text = " ".join(text.split())
    return f"{key}: {text}" if key and key != "config" else text


def unwrapped(error: BaseException) -> BaseException:
    """What a constructor raised, without what jsonargparse says around it."""
    while str(error).startswith("Does not validate") and error.__cause__ is not None:
        error = error.__cause__
    return error


def _no_file(name: str) -> str:
    path = Path(name)
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    name, folder = str(path), path.parent
    return f"no file {name!r}{did_you_mean(name, map(str, folder.glob('*')) if folder.is_dir() else ())}"


def _no_argument(class_path: str, name: str) -> str:
    short = class_path.rpartition(".")[2]
    return f"{short} has no argument {name!r}{did_you_mean(name, _arguments(short))}"


def _unknown_option(name: str, options: str | None) -> str:
    known = [*(options.split(", ") if options else sorted(_keys())), *COMMON]
    if full := [f"--{key}" for key in known if key.startswith(name)]:
        return f"options are spelt in full: {' or '.join(full)}, not --{name}"
    return f"unknown option '--{name}'{did_you_mean(name, known)}" if options else _no_key(name)


def _no_key(name: str) -> str:
    # A misspelt section comes with its first subkey: "modl.class_path".
    section, _, _ = name.partition(".")
    name = name if section in _OWN_KEYS else section
    return f"unknown key {name!r}{did_you_mean(name, _keys())}"


def _no_class(name: str) -> str:
    if kinds := [base.__name__ for base in _KINDS for cls in family(base) if cls.__name__ == name]:
        return f"{name!r} is a {kinds[0]}, which does not go here"
    return f"no class is called {name!r}{did_you_mean(name, (cls.__name__ for cls in _classes()))}"


def _no_choice(name: str, choices: str) -> str:
    return f"{name!r} is none of {choices}{did_you_mean(name, re.findall(r'[-.0-9A-Za-z_]+', choices))}"


def _wrong_type(expected: str, value: str) -> str:
    short = expected.rpartition(".")[2]
    return f"expected {_PLAIN.get(short, short)}, got {_short(value)!r}"


def _wrong_kind(name: str | None, kind: str, value: str) -> str:
    return f"{_short(name or value)!r} is no {kind}: name a class of that kind, for example {_example(kind)}"


def _no_kind(kind: str, value: str) -> str:
    return f"expected the name of a {kind}, or class_path and init_args, got {_short(value)!r}"


def _no_name(value: str) -> str:
    return f"class_path must be the name of a class, got {_short(value)!r}"


def _no_arguments(class_path: str, kind: str) -> str:
    name, kind = class_path.rpartition(".")[2], _PLAIN.get(kind, kind)
    return f"init_args of {name} must be its arguments by name, got {kind}"


def _no_settings(value: str) -> str:
    value = _short(value.removesuffix("..."))
    return f"the configuration file holds {value!r} and no settings: it needs the sections model, data and trainer"


def _not_literal(choices: str, value: str) -> str:
    return _no_choice(value.strip(), choices)


def _missing(names: str, command: str | None) -> str:
    if command:
        return f"vaezoo {command} needs {names}, for example: {example(command)}"
    options = " and ".join(f"--{name.rpartition('.')[2].strip()}" for name in names.split(","))
    return f"{options} missing: give --config FILE, or a name that vaezoo experiments lists, or {options} by name"


def _not_yaml(problem: str) -> str:
    return f"the configuration file is not valid YAML: {' '.join(problem.split())}"


_EXPLANATIONS: dict[str, Callable[..., str]] = {
    r"File does not exist: '?([^'\n]+)'?": _no_file,
    r"No module named '([^'\n]+)": no_module,
    r"class_path '([^']+)':\s+Option '([^']+)' is not accepted": _no_argument,
    r"callable class: Option '([^']+)' is not accepted(?s:.*?)class_path='([^']+)'": lambda name, class_path: (
        _no_argument(class_path, name)
    ),
    r"does not accept option '([^']+)'": _no_key,
    r"unrecognized arguments: --([^=\s]+)(?:.* \(of (.+)\))?": _unknown_option,
    r"Expected a dot import path string: ?([^\n]*)": _no_class,
    r"invalid choice: '([^']+)' \(choose from (.+)\)": _no_choice,
    r"Import path (?:(\S+) )?does not correspond to a subclass of (\w+)(?s:.*?)Given value: ([^\n]*)": _wrong_kind,
    r"class_path '([^']+)':\s+'(\w+)' object has no attribute 'keys'": _no_arguments,
    r"(?:argument of type '\w+' is not|unhashable type)(?s:.*?)Given value: ([^\n]*)": _no_name,
    r"Unexpected config: ((?s:.+))": _no_settings,
    r"Unable to load config '?([^\n]*)": lambda value: f"expected settings by name, got {_short(value)!r}",
    r"Expected an? <class '(?!NoneType)([^']+)'>\. Got value: ?([^\n]*)": _wrong_type,
    r"Expected a typing\.Literal\[([^\]]+)\]\. Got value: ([^\n]+)": _not_literal,
    r"(?s)Expected a typing\.Literal\[([^\]]+)\].*?Given value: ([^\n]+)": _not_literal,
    r"required: ([^\n]+?)(?: \(of vaezoo (\w+)\))?$": _missing,
    r"(?s)Problems parsing config: (.+)": _not_yaml,
    r"Not a valid subclass of (\w+)(?s:.*?)Given value: ([^\n]*)": _no_kind,
    r"- Expected an? <class '(?!NoneType)([^']+)'>\n(?s:.*?)Given value: ([^\n]*)": _wrong_type,
    r"Callable\[\[(?s:.*?)(\w+)\] expects a function or a callable class(?s:.*?)Given value: ([^\n]*)": _no_kind,
}
_KINDS: tuple[type[object], ...] = (
    VAE,
    Regularizer,
    Network,
    LatentGroup,
    LightningDataModule,
    Callback,
    Logger,
    Optimizer,
)
_PLAIN = {"Sequence": "list", "Mapping": "dict", "NoneType": "null"}
# What jsonargparse says around each complaint: types that it tried, and paths that it looked for.
_FRAME = re.compile(
    r"Does not validate|Subtypes:|Errors:|Given value|Expected an? (<class 'NoneType'>|path)|Problem with"
)


def _first_complaint(message: str) -> str:
    lines = [line.strip().removeprefix("- ") for line in re.sub(r'Parser key "[^"]+":', "", message).splitlines()]
    return _short(next((line for line in lines if line and not _FRAME.match(line)), message))


def _short(value: str) -> str:
    return on_one_line(value.strip().strip("'"), 200)


def _example(kind: str) -> str:
    known = [cls.__name__ for base in _KINDS if base.__name__ == kind for cls in family(base)[1:]]
    return min(known or [kind])


def check_sections(config: Namespace) -> None:
    """Refuse what jsonargparse lets pass: a trainer that is no settings, and null wherever there is a default.

    Raises:
        ArgumentError: Something is wrong; names it.
    """
    if not isinstance(config.trainer, Namespace):
        raise ArgumentError(None, f"Parser key \"trainer\": Unable to load config '{config.trainer}'")
    for key, section in (("model", config.model), ("data", config.data), ("callbacks", config.trainer.callbacks)):
        _check_nulls(section, key)


def _check_nulls(config: object, key: str) -> None:
    if isinstance(config, (dict, list)):
        for name, value in config.items() if isinstance(config, dict) else enumerate(config):
            _check_nulls(value, f"{key}.{name}")
    if not isinstance(config, Namespace) or "class_path" not in config:
        return
    arguments = config.get("init_args")
    for name, value in vars(arguments).items() if isinstance(arguments, Namespace) else ():
        parameter = _parameter(config.class_path.rpartition(".")[2], name)
        if value is None and parameter is not None and not _takes_none(parameter):
            raise ArgumentError(None, f'Parser key "{key}.{name}": it must not be null: give a value or leave it out')
        _check_nulls(value, f"{key}.{name}")


def _takes_none(parameter: inspect.Parameter) -> bool:
    # One without a default gets its value from the data.
    return parameter.default in (None, inspect.Parameter.empty) or type(None) in get_args(parameter.annotation)


def _parameter(class_name: str, name: str) -> inspect.Parameter | None:
    return next((found[name] for found in _signatures(class_name) if name in found), None)


def _classes() -> list[type]:
    return [cls for base in _KINDS for cls in family(base)]


def _arguments(class_name: str) -> set[str]:
    return {name for found in _signatures(class_name) for name in found} - {"self", "args", "kwargs"}


def _signatures(class_name: str) -> list[Mapping[str, inspect.Parameter]]:
    """Arguments of a class and of those that it hands its own on to."""
    ancestry = [ancestor for cls in _classes() if cls.__name__ == class_name for ancestor in cls.__mro__]
    own = [vars(ancestor)["__init__"] for ancestor in ancestry if "__init__" in vars(ancestor)]
    return [inspect.signature(constructor).parameters for constructor in own]


def _keys() -> set[str]:
    return {*_OWN_KEYS, *(f"trainer.{name}" for name in inspect.signature(Trainer.__init__).parameters)}
