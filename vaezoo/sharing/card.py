"""The model card of a shared model: `README.md`, with the header that the Hub reads."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from vaezoo.evaluation.report import cells, main_scores
from vaezoo.runs.files import atomic_write
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.shared import read_shared_config
from vaezoo.sharing.scores import shown
from vaezoo.text import json_text, markdown_row, printable

LIBRARY = "vaezoo"


def write_card(place: RunFolder, address: str | None = None) -> None:
    """Write the card of a folder that holds a shared model.

    Args:
        place: The folder.
        address: What `vaezoo.from_pretrained` is given to load it; the folder's name by default.
    """
    config = read_shared_config(place.shared_config)
    with atomic_write(place.card) as draft:
        draft.write_text(model_card(config, place.all_pictures(), address), encoding="utf-8")


def model_card(config: Mapping[str, Any], pictures: Sequence[Path] = (), address: str | None = None) -> str:
    """The card's text.

    Args:
        config: Content of the model's `config.json`.
        pictures: Pictures in the folder `pictures` beside the card.
        address: What loads it; its name by default.
    """
    name, short = printable(config["name"]), config["model_class"].rpartition(".")[2]
    sections = {
        "": _about(config, short),
        "Use it": _use(address or name),
        "Data": _data(config),
        "Scores": _scores(config),
        "Pictures": "\n\n".join(f"![{path.stem}](pictures/{path.name})" for path in pictures),
        "How it was made": _origin(config),
        "Limits": _limits(config),
    }
    text = [f"# {name}", *(part if not title else f"## {title}\n\n{part}" for title, part in sections.items() if part)]
    return f"---\n{_header(config, name, short)}---\n\n" + "\n\n".join(text) + "\n"


def _header(config: Mapping[str, Any], name: str, short: str) -> str:
    """YAML that the Hub reads: licence, tags and scores."""
    header: dict[str, Any] = {"license": config["license"]} if config["license"] else {}
    header |= {
        "library_name": LIBRARY,
        "pipeline_tag": "image-feature-extraction",
        "tags": [LIBRARY, "vae", "disentanglement", short],
    }
    results = shown(config["scores"]).results.values()
    values = [(key, result.scores[key]) for result in results for key in main_scores(result)]
    if values and config["data"]:
        data = _dataset(config)
        result = {
            "task": {"type": "image-feature-extraction"},
            "dataset": {"name": data, "type": data.lower()},
            "metrics": [{"name": key, "type": key, "value": value} for key, value in values if value == value],
        }
        header["model-index"] = [{"name": name, "results": [result]}]
    return str(yaml.safe_dump(header, sort_keys=False, allow_unicode=True))


def _about(config: Mapping[str, Any], short: str) -> str:
    paper = f" ({printable(config['paper'])})" if config["paper"] else ""
    trained = f", trained on {_dataset(config)}" if config["data"] else ""
    shape = config["arguments"].get("image_shape")
    images = f" It reads images of shape {tuple(shape)}, as floats in [0, 1] or as bytes." if shape else ""
    return (
        f"A {short}{paper}{trained}, made with {LIBRARY}: "
        f"disentangled representations with variational autoencoders.{images}"
    )


def _use(address: str) -> str:
    shipped = address.removeprefix("pretrained:")
    load = f'pretrained("{shipped}")' if shipped != address else f'from_pretrained("{address}")'
    lines = ["```python", f"import {LIBRARY}", "", f"model = vaezoo.{load}"]
    lines += ["codes = model.represent(images)  # (B, D)", "pictures = model.sample(8)", "```"]
    given = f"hub:{address}" if "/" in address and ":" not in address else address
    lines += [
        "",
        "```bash",
        f"vaezoo evaluate --ckpt_path {given}",
        f"vaezoo traverse --ckpt_path {given}",
        f"vaezoo explore {given}",
        "```",
    ]
    return "\n".join(lines)


def _data(config: Mapping[str, Any]) -> str:
    if not config["data"]:
        return "Not recorded."
    arguments = json_text(config["data"].get("init_args") or {}, indent=2)
    return f"`{printable(config['data']['class_path'])}` with\n\n```json\n{arguments}\n```"


def _scores(config: Mapping[str, Any]) -> str:
    if not config["scores"]:
        return "None were recorded."
    rows = [("score", "value [95 % interval]"), ("---", "---"), *cells(shown(config["scores"])).items()]
    kept = config["scores"]
    images = f"{kept['images']:,} {kept['split'] or ''} images".replace("  ", " ") if kept.get("images") else "images"
    return f"On {images}, seed {kept.get('seed') or 0}, by `vaezoo evaluate`.\n\n" + "\n".join(map(markdown_row, rows))


def _origin(config: Mapping[str, Any]) -> str:
    facts = {
        "command": f"`{printable(config['command'])}`" if config["command"] else "not recorded",
        "commit": config["commit"] or "not recorded",
        "vaezoo": config["vaezoo"],
        "steps": f"{config['steps']:,}" if config["steps"] else "not recorded",
        "licence": config["license"] or "not stated",
    }
    return "\n".join(f"- {name}: {printable(fact)}" for name, fact in facts.items())


def _limits(config: Mapping[str, Any]) -> str:
    lines = [
        "It knows the images that it was trained on: codes of other images mean nothing.",
        "Which unit stands for what was found by training; another seed gives another order.",
    ]
    if config["scores"]:
        lines.append("The scores are of this one model, not of the method: a paper's are means over seeds.")
    if config["weights"].get("precision") == "float16":
        lines.append("Weights are stored in half precision and read as float32.")
    return "\n".join(f"- {line}" for line in lines)


def _dataset(config: Mapping[str, Any]) -> str:
    return printable(config["data"]["class_path"]).rpartition(".")[2].removesuffix("DataModule")
