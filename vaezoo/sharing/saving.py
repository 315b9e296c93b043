"""`save_pretrained`: a trained model as a folder that anyone can load, with its card."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any

from vaezoo.evaluation.report import as_plain
from vaezoo.metrics.scoring import Evaluation
from vaezoo.models import VAE
from vaezoo.runs.data import RESOURCES
from vaezoo.runs.files import atomic_write
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.loading import content_of
from vaezoo.runs.shared import write_shared
from vaezoo.sharing.card import write_card
from vaezoo.sharing.scores import kept_scores


def save_pretrained(
    model: VAE,
    folder: str | Path,
    *,
    name: str | None = None,
    data: Mapping[str, Any] | None = None,
    scores: Evaluation | Mapping[str, Any] | None = None,
    command: str | None = None,
    commit: str | None = None,
    license: str | None = None,
    half: bool = False,
    pictures: Sequence[str | Path] = (),
) -> Path:
    """Write a model as `config.json`, `model.safetensors` and a model card, `README.md`.

    The folder holds only plain data and numbers: `vaezoo.from_pretrained`, `vaezoo.load` and every command with
    `--ckpt_path` read it and execute nothing in it. Absolute paths and settings of this machine are left out.

    Args:
        model: The model. Import your own classes before you load it.
        folder: Folder to write; files of these names are replaced.
        name: Name of the model. Defaults to the folder's.
        data: Data that it was trained on, `{"class_path": …, "init_args": …}`.
        scores: What `vaezoo.evaluation.evaluate` returned, or the content of a `metrics.json`.
        command: Command that trained it.
        commit: Version of the code that trained it.
        license: Licence of the weights, such as "mit".
        half: Store parameters in half precision; they are read as float32.
        pictures: PNG files to copy to the card.

    Returns:
        The folder.
    """
    place = RunFolder(Path(folder))
    if place.config.is_file():
        raise ValueError(f"{folder} is the folder of a run: give another one, which holds the shared model alone")
    plain = as_plain(scores) if isinstance(scores, Evaluation) else scores
    facts = {
        "name": name or place.path.resolve().name,
        "paper": model.paper,
        "steps": int(model.step),
        "data": without_machine(data),
        "scores": kept_scores(plain) if plain else None,
        "command": command,
        "commit": commit,
        "license": license,
    }
    halved = [key for key, _ in model.named_parameters()] if half else []
    write_shared(content_of(model), place.path, facts, halved)
    for picture in map(Path, pictures):
        with atomic_write(place.pictures / picture.name) as draft:
            shutil.copyfile(picture, draft)
    write_card(place)
    return place.path


def without_machine(value: Any) -> Any:
    """Settings without absolute paths and without what is a machine's own."""
    if isinstance(value, Mapping):
        kept = {key: item for key, item in value.items() if key not in RESOURCES and not _is_absolute(item)}
        return {key: without_machine(item) for key, item in kept.items()}
    return [without_machine(item) for item in value] if isinstance(value, (list, tuple)) else value


def _is_absolute(value: Any) -> bool:
    if not isinstance(value, (str, PurePath)):
        return False
    text = str(value)
    return text.startswith("~") or PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute()
