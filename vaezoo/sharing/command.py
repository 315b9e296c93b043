"""`vaezoo share`: a run as a folder to give away; `vaezoo pretrained`: the models that come with vaezoo."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from jsonargparse import Namespace
from lightning.pytorch import LightningDataModule

from vaezoo.evaluation.report import cells
from vaezoo.runs.commits import own_commit
from vaezoo.runs.data import RunData, require_fitting_images, split_data_options
from vaezoo.runs.files import atomic_write
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.loading import data_settings, load
from vaezoo.runs.options import CommandParser, checkpoint_in
from vaezoo.runs.shared import read_shared_config
from vaezoo.sharing.card import model_card, write_card
from vaezoo.sharing.hub import push_to_hub, require_hub
from vaezoo.sharing.precision import checked_half
from vaezoo.sharing.pretrained import SHIPPED, pretrained_config, pretrained_names, require_name
from vaezoo.sharing.saving import save_pretrained, without_machine
from vaezoo.sharing.scores import kept_scores, read_scores_file, scores_beside, shown
from vaezoo.specs import with_public_names
from vaezoo.text import on_one_line, printable

MOST_PICTURES, MOST_PICTURE_BYTES = 4, 300_000
PLOTS = ("nats", "covariance", "importance", "information")
"""Pictures of numbers, which a card has after those of images."""
LISTED_SCORES = 3


def run_share(args: Sequence[str], data_class: type[LightningDataModule]) -> None:
    """Write the folder of a shared model, and say what is in it.

    Args:
        args: Command line after `vaezoo share`.
        data_class: Base of the datamodules to choose from.
    """
    own, data_args = split_data_options(args)
    options = _share_parser().parse_args(own)
    if not re.fullmatch(r"\w[\w.-]*", options.name):
        raise ValueError(f"--name {options.name!r} must be letters, digits, _, - and . alone, as in partedvae_mnist")
    if options.hub:
        require_hub()  # before anything is written
    folder = RunFolder(Path(options.output or options.name))
    if folder.path.exists() and (not folder.path.is_dir() or any(folder.path.iterdir())):
        raise FileExistsError(f"{folder.path} already exists: remove it, or choose another --output")
    checkpoint = Path(checkpoint_in(options.run))
    model, run = load(checkpoint), RunFolder.of(checkpoint)
    config = run.read_config() if run.config.is_file() else {}
    known = read_shared_config(run.shared_config) if checkpoint.name == run.weights.name else {}  # shared before
    scores: Mapping[str, Any] | None = scores_beside(checkpoint) or known.get("scores")
    if options.scores:
        scores = kept_scores(read_scores_file(Path(options.scores)))
    lines: list[str] = []
    if options.half:
        data, why = _opened(run, RunData(data_class, data_args), data_args)
        if data is not None:
            require_fitting_images(checkpoint, model, data)
        scores, lines = checked_half(model, data, scores)
        lines = [*why, *lines]
    save_pretrained(
        model,
        folder.path,
        name=options.name,
        data=_data(config or known, data_class),
        scores=scores,
        command=options.command or known.get("command") or ("vaezoo fit --config training.yaml" if config else None),
        commit=options.commit or (known.get("commit") if known else own_commit()),
        license=options.license or known.get("license"),
        half=options.half or known.get("weights", {}).get("precision") == "float16",
        pictures=_pictures(run, options),
    )
    if folder.path.resolve().parent == SHIPPED:
        write_card(folder, f"pretrained:{options.name}")
    if config:
        _write_training(folder.training, config)
    elif run.training.is_file():
        shutil.copyfile(run.training, folder.training)
    _conclude(folder, scores is not None, lines)
    if options.hub:
        print(f"published: {push_to_hub(folder.path, options.hub)}")


def run_pretrained(args: Sequence[str]) -> None:
    """List the models that come with vaezoo.

    Args:
        args: Command line after `vaezoo pretrained`.
    """
    options = _pretrained_parser().parse_args(list(args))
    if options.name is not None:
        require_name(options.name)
        print(
            model_card(pretrained_config(options.name), (), f"pretrained:{options.name}").split("---\n", 2)[2].strip()
        )
        return
    entries = [_entry(name, pretrained_config(name)) for name in pretrained_names()]
    if not entries:
        print("no pretrained model comes with this version of vaezoo")
        return
    print("each with its data, size, scores [95 % interval], and the command that made it\n")
    print("\n\n".join(entries))
    print("\nload one with vaezoo.pretrained(NAME), or use it in a command with --ckpt_path pretrained:NAME")


def _entry(name: str, config: dict[str, Any]) -> str:
    """One model in a list, a line for each of its facts: commands are too long for a table."""
    scores = [f"{key} {value}" for key, value in cells(shown(config.get("scores"))).items()][:LISTED_SCORES]
    weights = config["weights"]
    facts = [config["model_class"].rpartition(".")[2] + (f" ({config['paper']})" if config.get("paper") else "")]
    if data := config.get("data"):
        labels = data.get("init_args", {}).get("labels")
        facts.append(str(data.get("class_path")).rpartition(".")[2].removesuffix("DataModule"))
        facts += [f"{labels:,} labels"] if type(labels) is int else []
    facts.append(f"{weights['bytes'] / 1e6:.1f} MB" + (" to fetch" if weights.get("address") else ""))
    lines = [", ".join(facts), ", ".join(scores), config.get("command")]
    return "\n".join([name, *(f"  {printable(line)}" for line in lines if line)])


def _opened(run: RunFolder, data: RunData, data_args: Sequence[str]) -> tuple[Any, list[str]]:
    """A run's data, or None and why."""
    try:
        return data.of(run)[0], []
    except Exception as error:
        if data_args:
            raise
        return None, [f"the run's data cannot be opened here ({on_one_line(str(error), 200)})"]


def _data(config: Any, data_class: type[LightningDataModule]) -> dict[str, Any] | None:
    if not isinstance(config, dict) or not config.get("data"):
        return None
    settings = data_settings(config, data_class)  # of a class that is known
    return {"class_path": config["data"]["class_path"], "init_args": settings["init_args"]}


def _pictures(run: RunFolder, options: Namespace) -> list[Path]:
    if options.pictures is not None:
        return [Path(picture) for picture in options.pictures]
    small = [path for path in run.all_pictures() if path.stat().st_size <= MOST_PICTURE_BYTES and path.is_file()]
    return sorted(small, key=lambda path: path.stem.startswith(PLOTS))[:MOST_PICTURES]


def _write_training(file: Path, config: Any) -> None:
    """The run's configuration, without what is this machine's or user's own."""
    left_out = ("ckpt_path", "runs_dir", "weights_only")
    kept = {key: value for key, value in with_public_names(config).items() if key not in left_out}
    kept["trainer"] = {**(kept.get("trainer") or {}), "logger": None, "default_root_dir": None}
    with atomic_write(file) as draft:
        draft.write_text(yaml.safe_dump(without_machine(kept), sort_keys=False, allow_unicode=True), encoding="utf-8")


def _conclude(folder: RunFolder, scored: bool, lines: Sequence[str]) -> None:
    size = sum(path.stat().st_size for path in folder.path.rglob("*") if path.is_file())
    lines = [*lines, f"written: {folder.path}, {size / 1e6:.1f} MB; read {folder.card} before you share it"]
    if not scored:
        lines.append("the card has no scores: run vaezoo evaluate --ckpt_path RUN first, or pass --scores FILE")
    print("\n".join(map(printable, [*lines, f"to load it: vaezoo.from_pretrained({str(folder.path)!r})"])))


def _share_parser() -> CommandParser:
    parser = CommandParser(
        prog="vaezoo share",
        description="Write a model to a folder that anyone can load: config.json, model.safetensors and a model card.",
        epilog="--data NAME and --data.ARG VALUE override the data on which half precision is checked.",
    )
    add = parser.add_argument
    add("run", type=str, help="Run (best checkpoint) or checkpoint.")
    add("--name", type=str, required=True, help="Name of the model, such as partedvae_mnist.")
    add("--output", type=str | None, help="Folder to write. Defaults to NAME.")
    add("--half", type=bool, default=False, help="Store half precision, if codes and scores survive it.")
    add("--scores", type=str | None, help="File of scores. Defaults to the metrics.json beside the checkpoint.")
    add("--command", type=str | None, help="Training command to print in the card.")
    add("--commit", type=str | None, help="Commit of the code that trained it. Defaults to the commit of this clone.")
    add("--license", type=str | None, help="Licence of the weights, such as mit.")
    add("--pictures", nargs="*", type=str, help="PNG files for the card. Defaults to a few of the run's pictures.")
    add("--hub", type=str | None, help="Also publish it on the Hugging Face Hub, as USER/NAME.")
    return parser


def _pretrained_parser() -> CommandParser:
    parser = CommandParser(
        prog="vaezoo pretrained",
        description="List the trained models that come with vaezoo: data, scores, size and training command.",
    )
    parser.add_argument("name", nargs="?", type=str, help="Model whose card to print. Defaults to a list of all.")
    return parser
