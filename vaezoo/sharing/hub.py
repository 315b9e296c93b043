"""Models on the Hugging Face Hub, by the extra `hub`; `HF_ENDPOINT` names another Hub, `HF_HUB_OFFLINE=1` uses none."""

import os
import re
import shutil
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vaezoo.models import VAE
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.shared import read_shared_config
from vaezoo.sharing.card import write_card
from vaezoo.sharing.saving import save_pretrained

REPOSITORY = r"[\w-][\w.-]*/[\w-][\w.-]*(@[\w./-]+)?"
"""How a model on the Hub is named: user/name, and a revision where one is meant."""


def push_to_hub(
    model: VAE | str | Path,
    repo_id: str,
    *,
    private: bool = False,
    message: str = "Upload a model of vaezoo",
    token: str | None = None,
    **facts: Any,
) -> str:
    """Publish a model on the Hugging Face Hub, with its card.

    Args:
        model: A model, or a folder that `save_pretrained` or `vaezoo share` wrote.
        repo_id: Repository, `user/name`. Created if it does not exist.
        private: Whether a new repository is private.
        message: Message of the commit.
        token: Access token. Defaults to that of `hf auth login`, or HF_TOKEN.
        facts: Arguments of `save_pretrained`, if `model` is a model.

    Returns:
        Its address.

    Raises:
        ModuleNotFoundError: The extra `hub` is not installed.
        ConnectionError: The Hub refused it, or was not reached.
    """
    hub = require_hub()
    with TemporaryDirectory() as folder:
        place = RunFolder(Path(folder) / repo_id.rpartition("/")[2])
        if isinstance(model, VAE):
            save_pretrained(model, place.path, **facts)
        elif facts:
            raise ValueError(f"{next(iter(facts))} is for a model: a folder is published as it is")
        else:
            _copy(RunFolder(Path(model)), place)
        write_card(place, repo_id)
        try:
            api = hub.HfApi(_endpoint(), token)
            api.create_repo(repo_id, private=private, exist_ok=True)
            api.upload_folder(repo_id=repo_id, folder_path=place.path, commit_message=message)
            return f"{api.endpoint}/{repo_id}"
        except Exception as error:  # of the network, the Hub or the names; each has a class of its own
            raise ConnectionError(
                f"{repo_id} could not be published ({_short(error)}): check the name, the network and `hf auth login`"
            ) from error


def fetch_from_hub(name: str) -> Path:
    """Folder of a model on the Hub, in its own cache; once there, it is found without a network.

    Args:
        name: `user/name`, or `user/name@revision`.

    Raises:
        ModuleNotFoundError: The extra `hub` is not installed.
        ConnectionError: It could not be fetched.
        ValueError: It is no model of vaezoo.
    """
    if not re.fullmatch(REPOSITORY, name):
        raise ValueError(f"hub:{name} is no address: write hub:user/name, or hub:user/name@revision")
    hub = require_hub()
    repo_id, _, revision = name.partition("@")
    names = RunFolder(Path())
    try:
        get = partial(hub.hf_hub_download, repo_id, revision=revision or None, endpoint=_endpoint())
        read_shared_config(Path(get(names.shared_config.name)))  # before anything large is fetched
        return Path(get(names.weights.name)).parent
    except (ValueError, FileNotFoundError) as error:
        if type(error).__module__ == "builtins":
            raise
        raise _not_fetched(name, error) from error
    except Exception as error:
        raise _not_fetched(name, error) from error


def _endpoint() -> str | None:
    """The Hub; the library reads the variable once, when it is imported."""
    return os.environ.get("HF_ENDPOINT") or None


def _not_fetched(name: str, error: Exception) -> ConnectionError:
    return ConnectionError(
        f"hub:{name} could not be fetched ({_short(error)}): check the name, the network and `hf auth login`"
    )


def require_hub() -> Any:
    """The library of the Hub.

    Raises:
        ModuleNotFoundError: The extra `hub` is not installed.
    """
    try:
        import huggingface_hub
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("the Hugging Face Hub needs an extra: pip install 'vaezoo[hub]'") from error
    return huggingface_hub


def _copy(source: RunFolder, target: RunFolder) -> None:
    """Copy what belongs to a shared model, and nothing else that lies beside it."""
    read_shared_config(source.shared_config)
    target.pictures.mkdir(parents=True)
    for file in (source.weights, source.shared_config, source.training):
        if file.is_file():
            shutil.copyfile(file, target.path / file.name)
    for picture in source.all_pictures():
        shutil.copyfile(picture, target.pictures / picture.name)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
