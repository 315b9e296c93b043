"""One readable line for a wrong configuration, with the nearest right spelling."""

import inspect
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path

from lightning.pytorch import Callback, LightningDataModule, Trainer
from lightning.pytorch.loggers import Logger

from vaezoo.specs import Specified, family

_OWN_KEYS = (
    "ckpt_path",
    "config",
    "data",
    "experiment",
    "model",
    "print_config",
    "runs_dir",
    "seed_everything",
    "trainer",
)


def one_line(message: str) -> str:
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
        text = " ".join(re.sub(r'Parser key "[^"]+":', "", message).split())
    return f"{key}: {text}" if key and key != "config" else text


def _no_file(name: str) -> str:
    path = Path(name)
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    name, folder = str(path), path.parent
    return f"no file {name!r}{_nearest(name, map(str, folder.glob('*')) if folder.is_dir() else ())}"


def _no_argument(class_path: str, name: str) -> str:
    short = class_path.rpartition(".")[2]
    return f"{short} has no argument {name!r}{_nearest(name, _arguments(short))}"


def _no_key(name: str) -> str:
    # A misspelt section comes with its first subkey: "modl.class_path".
    section, _, _ = name.partition(".")
    name = name if section in _OWN_KEYS else section
    return f"unknown key {name!r}{_nearest(name, _keys())}"


def _no_class(name: str) -> str:
    return f"no class is called {name!r}{_nearest(name, (cls.__name__ for cls in _classes()))}"


def _no_choice(name: str, choices: str) -> str:
    return f"{name!r} is none of {choices}{_nearest(name, re.findall(r'[-.0-9A-Za-z_]+', choices))}"


def _wrong_type(expected: str, value: str) -> str:
    return f"expected {expected}, got {value.strip()!r}"


def _not_literal(choices: str, value: str) -> str:
    return _no_choice(value.strip(), choices)


def _missing(names: str) -> str:
    options = " and ".join(f"--{name.rpartition('.')[2].strip()}" for name in names.split(","))
    return f"{options} missing: give --config FILE, for example one of experiments/, or {options} by name"


def _not_yaml(problem: str) -> str:
    return f"the configuration file is not valid YAML: {' '.join(problem.split())}"


_EXPLANATIONS: dict[str, Callable[..., str]] = {
    r"File does not exist: '?([^'\n]+)'?": _no_file,
    r"class_path '([^']+)':\s+Option '([^']+)' is not accepted": _no_argument,
    r"does not accept option '([^']+)'": _no_key,
    r"unrecognized arguments: --([^=\s]+)": _no_key,
    r"Expected a dot import path string: (\S+)": _no_class,
    r"invalid choice: '([^']+)' \(choose from (.+)\)": _no_choice,
    r"Expected an? <class '([^']+)'>\. Got value: (.+)": _wrong_type,
    r"Expected a typing\.Literal\[([^\]]+)\]\. Got value: ([^\n]+)": _not_literal,
    r"(?s)Expected a typing\.Literal\[([^\]]+)\].*?Given value: ([^\n]+)": _not_literal,
    r"required: ([^\n]+)": _missing,
    r"(?s)Problems parsing config: (.+)": _not_yaml,
}


def _nearest(name: str, candidates: Iterable[str]) -> str:
    close = get_close_matches(name, set(candidates), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def _classes() -> list[type]:
    bases: tuple[type[object], ...] = (Specified, LightningDataModule, Callback, Logger)
    return [cls for base in bases for cls in family(base)]


def _arguments(class_name: str) -> set[str]:
    ancestry = [ancestor for cls in _classes() if cls.__name__ == class_name for ancestor in cls.__mro__]
    signatures = [
        inspect.signature(vars(ancestor)["__init__"]) for ancestor in ancestry if "__init__" in vars(ancestor)
    ]
    return {name for signature in signatures for name in signature.parameters} - {"self", "args", "kwargs"}


def _keys() -> set[str]:
    return {*_OWN_KEYS, *(f"trainer.{name}" for name in inspect.signature(Trainer.__init__).parameters)}
