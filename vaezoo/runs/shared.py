"""Models as files that anyone can read: a folder with `config.json`, plain data, and `model.safetensors`, numbers.

`config.json` holds, in this order:

- `format`: number of this layout; `vaezoo`: version that wrote it;
- `model_class`, `arguments`: public name of the class and its arguments as plain specs; `notes`: what else a
  checkpoint of it would note;
- `weights`: `sha256` and `bytes` of `model.safetensors`, its `precision`, and an `address` where it lies elsewhere;
- facts, null where not known: `name`, `paper`, `steps`, `data`, `scores`, `command`, `commit`, `license`.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from vaezoo import __version__
from vaezoo.runs.files import MOST_BYTES, atomic_write
from vaezoo.runs.folder import RunFolder
from vaezoo.text import json_text

FORMAT = 1
ARGUMENTS = "hyper_parameters"
"""Where a checkpoint has the arguments of its model; Lightning's name."""
FACTS = ("name", "paper", "steps", "data", "scores", "command", "commit", "license")
_BLOCK = 1 << 20
_HALF = (torch.float16, torch.bfloat16)
_AGAIN = "get the folder again"


def write_shared(
    checkpoint: Mapping[str, Any], folder: Path, facts: Mapping[str, Any], halved: Collection[str] = ()
) -> None:
    """Write a model's two files.

    Args:
        checkpoint: What `vaezoo.save` would write.
        folder: Where they go; it is made where it is missing, and what it holds of them is replaced.
        facts: What is known about the model, by the names in `FACTS`.
        halved: Tensors to store in half precision; those with numbers beyond its range are stored as they are.

    Raises:
        ValueError: A fact has an unknown name.
    """
    if unknown := [name for name in facts if name not in FACTS]:
        raise ValueError(f"{unknown[0]!r} is no fact of a shared model: give {', '.join(FACTS)}")
    place = RunFolder(folder)
    tensors = {name: _stored(value, name in halved) for name, value in checkpoint["state_dict"].items()}
    with atomic_write(place.weights) as draft:
        draft.write_bytes(save(tensors, metadata={"format": "pt"}))  # which the Hub reads
    taken = ("state_dict", "model_class", ARGUMENTS, "pytorch-lightning_version")
    config = {
        "format": FORMAT,
        "vaezoo": __version__,
        "model_class": checkpoint["model_class"],
        "arguments": dict(checkpoint[ARGUMENTS]),
        "notes": {name: value for name, value in checkpoint.items() if name not in taken},
        "weights": {
            "sha256": sha256_of(place.weights),
            "bytes": place.weights.stat().st_size,
            "precision": "float16" if any(t.dtype == torch.float16 for t in tensors.values()) else "float32",
        },
        **{name: facts.get(name) for name in FACTS},
    }
    write_config(place.shared_config, config)


def write_config(file: Path, config: Mapping[str, Any]) -> None:
    """Write a `config.json`."""
    with atomic_write(file) as draft:
        draft.write_text(json_text(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_shared_config(file: Path) -> dict[str, Any]:
    """The content of a `config.json`, which may come from anyone.

    Raises:
        FileNotFoundError: There is none.
        ValueError: It is no model of vaezoo, one of a later version, or too large.
    """
    if not file.exists():
        raise FileNotFoundError(f"{file} is missing: give a folder that vaezoo.save_pretrained wrote")
    if not file.is_file() or file.stat().st_size > MOST_BYTES:
        raise ValueError(f"{file} is no plain file of at most {MOST_BYTES >> 10} kB: {_AGAIN}")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is no JSON, or damaged ({_short(error)}): {_AGAIN}") from error
    number = config.get("format") if isinstance(config, dict) else None
    if type(number) is not int or number < 1:
        raise ValueError(f"{file} is of no vaezoo model: give a folder that vaezoo.save_pretrained wrote")
    if number > FORMAT:
        raise ValueError(
            f"{file} has format {number}, and this vaezoo ({__version__}) reads up to {FORMAT}: pip install -U vaezoo"
        )
    kinds = {"model_class": str, "arguments": dict, "notes": dict, "weights": dict}
    for name, kind in kinds.items():
        if not isinstance(config.get(name), kind):
            raise ValueError(f"{file} has no {name!r} that could be read: {_AGAIN}")
    if not isinstance(config["weights"].get("sha256"), str) or type(config["weights"].get("bytes")) is not int:
        raise ValueError(f"{file} has no 'weights' with sha256 and bytes: {_AGAIN}")
    return dict(config)


def read_shared(weights: Path) -> dict[str, Any]:
    """A shared model as a checkpoint of it would be; every byte is compared with its checksum, none is executed.

    Args:
        weights: Its `model.safetensors`; `config.json` lies beside it.

    Raises:
        FileNotFoundError: One of the two is missing.
        ValueError: One of them is damaged, or they do not belong together.
    """
    file = RunFolder(weights.parent).shared_config
    config = read_shared_config(file)
    require_whole(weights, config["weights"])
    try:
        tensors = load_file(weights)
    except (SafetensorError, ValueError, RuntimeError) as error:
        raise ValueError(f"{weights} is damaged ({_short(error)}): {_AGAIN}") from error
    return {
        **config["notes"],
        "model_class": config["model_class"],
        ARGUMENTS: config["arguments"],
        "state_dict": {name: value.float() if value.dtype in _HALF else value for name, value in tensors.items()},
        "pytorch-lightning_version": "2.6.0",  # the layout that the hooks of models read
    }


def require_whole(weights: Path, noted: Mapping[str, Any]) -> None:
    """Refuse weights that are not those that a configuration notes.

    Raises:
        FileNotFoundError: There are none.
        ValueError: They are others.
    """
    if not weights.is_file():
        raise FileNotFoundError(f"{weights} is missing: {_AGAIN}")
    if weights.stat().st_size != noted["bytes"]:  # also keeps a file of any size from being read
        size = weights.stat().st_size
        raise ValueError(f"{weights} is damaged: it has {size:,} bytes, config.json says {noted['bytes']:,}: {_AGAIN}")
    if sha256_of(weights) != noted["sha256"]:
        raise ValueError(f"{weights} is damaged, or of another model: its SHA-256 is not config.json's: {_AGAIN}")


def sha256_of(file: Path) -> str:
    """Checksum of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while block := content.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _stored(value: Tensor, halved: bool) -> Tensor:
    value = value.detach().cpu()
    half = value.half() if halved and value.dtype == torch.float32 else value
    # A copy: two names of one tensor are two tensors in the file.
    return (half if half.isfinite().all() else value).contiguous().clone()


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:160]
