"""Find the shipped experiments: beside the package in a clone, inside it once installed."""

import re
from pathlib import Path

import vaezoo
from vaezoo.text import did_you_mean

_PACKAGE = Path(vaezoo.__file__).resolve().parent
_INSTALLED = _PACKAGE / "experiments"  # setup.py copies them there
SHIPPED = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent / "experiments"


def find_experiment(given: str, folder: str = "") -> str:
    """Path of a configuration, or of a study at folder="studies".

    Files in the current folder win, then shipped files by name (`larvae_3dshapes`) or by path
    (`experiments/larvae_3dshapes.yaml`).

    Args:
        given: The user's input; returned unchanged if it is not a name and nothing is found.
        folder: Where names are looked up, below `experiments/`.

    Raises:
        ValueError: It is a name, but no file or shipped experiment has it.
    """
    if Path(given).is_file():
        return given
    if re.fullmatch(r"[\w-]+", given):
        return str(shipped(given, folder))
    found = SHIPPED.parent / given
    return str(found) if found.parent == SHIPPED / folder and found.is_file() else given


def shipped(name: str, folder: str = "") -> Path:
    """The shipped file of this name.

    Raises:
        ValueError: Nothing is called so.
    """
    files = {path.stem: path for path in sorted((SHIPPED / folder).glob("*.yaml"))}
    if name not in files:
        kind = "study" if folder else "experiment"
        raise ValueError(
            f"no file and no {kind} is called {name!r}{did_you_mean(name, files)} (see vaezoo experiments)"
        )
    return files[name]
