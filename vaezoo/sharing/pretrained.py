"""Trained models by name: those in `vaezoo/pretrained_models`, whose weights lie there or at an address.

A folder there is a model. One whose weights are too large for the package holds `config.json` alone, with an `address`
in its `weights`; they are fetched into a cache when they are first asked for.
"""

import os
import re
from pathlib import Path
from typing import Any

from filelock import FileLock

import vaezoo
from vaezoo.models import VAE
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.loading import load
from vaezoo.runs.shared import read_shared_config, require_whole, write_config
from vaezoo.sharing.download import download
from vaezoo.sharing.hub import REPOSITORY, fetch_from_hub
from vaezoo.text import did_you_mean

SHIPPED = Path(vaezoo.__file__).resolve().parent / "pretrained_models"
"""Where they lie, in a clone and once installed."""
CACHE = "VAEZOO_CACHE"
"""Environment variable with the folder of what is downloaded; ~/.cache/vaezoo by default."""


def pretrained(name: str, map_location: Any = "cpu") -> VAE:
    """A trained model that comes with vaezoo, in evaluation mode; `vaezoo pretrained` lists them.

    Args:
        name: Its name.
        map_location: Device to load to, as in `torch.load`.

    Raises:
        ValueError: There is no such model, or the download does not match its checksum.
        ConnectionError: It is not part of the package, and could not be downloaded.
    """
    return load(pretrained_folder(name), map_location)


def from_pretrained(name: str | Path, map_location: Any = "cpu") -> VAE:
    """Load a shared model, in evaluation mode; nothing in it is executed.

    Args:
        name: A folder that `save_pretrained` wrote, a model of `vaezoo pretrained`, or one on the Hugging Face Hub,
            `user/name` or `user/name@revision` (extra `hub`).
        map_location: Device to load to, as in `torch.load`.

    Raises:
        FileNotFoundError: There is no such folder.
        ValueError: It is damaged, or no vaezoo model.
        ConnectionError: It could not be fetched.
    """
    if Path(name).is_dir():
        return load(Path(name), map_location)
    return load(shared_folder(str(name)), map_location)


def shared_folder(name: str) -> Path:
    """Folder of a model by its name, or by its address on the Hub."""
    text = name.removeprefix("hub:")
    if text != name or re.fullmatch(REPOSITORY, text):
        return fetch_from_hub(text)
    if "/" in name or name.startswith("."):
        raise FileNotFoundError(f"there is no folder {name}: give one, a name of vaezoo pretrained, or hub:user/name")
    return pretrained_folder(name.removeprefix("pretrained:"))


def pretrained_names() -> list[str]:
    """Names of the models that come with vaezoo."""
    return sorted(file.parent.name for file in SHIPPED.glob("*/config.json"))


def require_name(name: str) -> None:
    """Refuse what is no name of one of them.

    Raises:
        ValueError: None is called so.
    """
    names = pretrained_names()
    if name not in names:
        raise ValueError(f"no pretrained model is called {name!r}{did_you_mean(name, names)} (see vaezoo pretrained)")


def pretrained_config(name: str) -> dict[str, Any]:
    """What one of them is."""
    return read_shared_config(RunFolder(SHIPPED / name).shared_config)


def pretrained_folder(name: str) -> Path:
    """Folder of one of them with its weights, which are fetched where they are not part of the package.

    Raises:
        ValueError: There is no such model, or the download does not match its checksum.
        ConnectionError: It could not be downloaded.
    """
    require_name(name)
    place = RunFolder(SHIPPED / name)
    return place.path if place.weights.is_file() else _fetched(name, pretrained_config(name))


def _fetched(name: str, config: dict[str, Any]) -> Path:
    noted = config["weights"]
    if not isinstance(noted.get("address"), str):
        raise ValueError(f"{SHIPPED / name} has neither weights nor their address: install vaezoo again")
    cache = Path(os.environ.get(CACHE) or Path.home() / ".cache" / "vaezoo")
    place = RunFolder(cache / "pretrained" / name / noted["sha256"][:16])
    place.path.mkdir(parents=True, exist_ok=True)
    with FileLock(place.path / ".lock"):  # of several processes, one downloads
        try:
            require_whole(place.weights, noted)
        except (FileNotFoundError, ValueError):
            download(noted["address"], place.weights, noted["bytes"], noted["sha256"])
        write_config(place.shared_config, config)
    return place.path
