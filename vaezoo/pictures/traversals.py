"""`vaezoo figure` and `vaezoo traverse`: the papers' figures of what models have learnt, from checkpoints."""

from collections.abc import Sequence
from pathlib import Path

import torch
from jsonargparse import Namespace
from lightning.pytorch import LightningDataModule

from vaezoo.pictures.figures import add_style_options, names_file, style_of
from vaezoo.pictures.kinds import IMAGES, KINDS, LISTED, Kind
from vaezoo.pictures.subjects import Subject
from vaezoo.runs.additions import Additions, Track, add_tracking_option, is_tracked
from vaezoo.runs.data import RunData, split_data_options
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.loading import load
from vaezoo.runs.options import CommandParser, KeepLines, checkpoint_in
from vaezoo.text import printable

EPILOG = f"""\
{LISTED}
--image FILE starts from a picture of your own and shows it beside its edits (JointVAE Fig. 9b).
--data NAME and --data.ARG VALUE override the run's data; --data.help NAME lists arguments.
--row_names gives names in order, or some by what they are called: --row_names z3='x position' 'z0=$\\theta$'.
"""


SHOWN = (".png", ".gif")
"""Files that trackers show."""


def run_figure(args: Sequence[str], data_class: type[LightningDataModule], track: Track) -> None:
    """Draw one kind of figure of runs.

    Args:
        args: Command line after `vaezoo figure`.
        data_class: Base of the datamodules to choose from.
        track: Adds the figures to the run.
    """
    own, data_args = split_data_options(args)
    options = _figure_parser().parse_args(own)
    _draw(options.runs, options, RunData(data_class, data_args), track)


def run_traverse(args: Sequence[str], data_class: type[LightningDataModule], track: Track) -> None:
    """Draw one kind of figure of checkpoints: `vaezoo figure`, of kind units by default.

    Args:
        args: Command line after `vaezoo traverse`.
        data_class: Base of the datamodules to choose from.
        track: Adds the figures of a checkpoint to its run on Weights & Biases.
    """
    own, data_args = split_data_options(args)
    options = _parser().parse_args(own)
    _draw(options.ckpt_path, options, RunData(data_class, data_args), track)


def _draw(runs: Sequence[str], options: Namespace, data: RunData, track: Track) -> None:
    checkpoints = [Path(checkpoint_in(run)) for run in runs]
    if options.image_indices is None:
        options.image_indices = list(range(IMAGES.get(options.kind, 1)))
    _check(checkpoints, options)
    style = style_of(options, Path(options.output) if options.output else None)
    subjects = [Subject(path, load(path), data) for path in checkpoints]
    output = Path(options.output) if options.output else RunFolder.of(subjects[0].path).traversals
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        drawn = KINDS[options.kind](subjects, options)
    files = style.save(drawn, output)
    print(printable(f"{options.kind}: {output}" + (f" ({len(files)} files)" if not names_file(output) else "")))
    pictures = {file.name: file for file in files if file.suffix in SHOWN}
    # Figures of several are of no one run.
    if options.wandb and pictures and len(subjects) == 1 and is_tracked(subjects[0].path):
        track(Additions(subjects[0].path, subjects[0].model, "traverse", pictures=pictures))


def _check(checkpoints: Sequence[Path], options: Namespace) -> None:
    for path in checkpoints:
        if not path.is_file():
            raise FileNotFoundError(f"no checkpoint at {path}")
    for name, least in (("steps", 1), ("pool", 1), ("draws", 1), ("seed", 0)):
        if options[name] is not None and options[name] < least:
            raise ValueError(f"--{name} must be {least} or more, not {options[name]}")
    for name in ("image_indices", "classes"):
        if min(options[name]) < 0:
            raise ValueError(f"--{name} must be 0 or more, not {min(options[name])}")
    if options.span is not None and not torch.tensor(options.span).isfinite().all():
        raise ValueError(f"--span must be two finite numbers, not {options.span}")


def _figure_parser() -> CommandParser:
    parser = CommandParser(
        prog="vaezoo figure",
        description="Draw a figure of what a model has learnt, for a paper.",
        epilog=EPILOG,
        formatter_class=KeepLines,
    )
    parser.add_argument("runs", nargs="+", type=str, help="Runs (best checkpoint) or checkpoints. Several are stacked.")
    parser.add_argument("kind", type=Kind, help="Kind of figure; see below.")
    _add_options(parser)
    return parser


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="vaezoo traverse",
        description="Draw what each latent unit does, as in the papers' figures.",
        epilog=EPILOG,
        formatter_class=KeepLines,
    )
    add = parser.add_argument
    add(
        "--ckpt_path",
        nargs="+",
        type=str,
        required=True,
        help="Checkpoints, or runs (best checkpoint). Several are stacked.",
    )
    add("--kind", type=Kind, default="units", help="Kind of figure; see below.")
    _add_options(parser)
    return parser


def _add_options(parser: CommandParser) -> None:
    add = parser.add_argument
    add(
        "--image_indices",
        nargs="+",
        type=int,
        help="Test images to start from, by index. Defaults to the first, or the first 8.",
    )
    add("--image", nargs="+", type=str, help="Image files to start from instead; resized to the model's image size.")
    add("--prior", action="store_true", help="Start from the centre of the prior; kind starts uses samples.")
    add("--draws", type=int, default=8, help="Number of prior samples.")
    add("--latents", nargs="+", type=str, help="Latent groups. Defaults to all decoded groups.")
    add("--units", nargs="+", type=int, help="Units, or labels. Defaults to all, largest KL first.")
    add(
        "--span",
        nargs=2,
        type=float,
        help="First and last value. Defaults to -3 3 for WeLaVAE and PartedVAE, else -2 2.",
    )
    add("--steps", type=int | None, help="Values of a continuous unit. Defaults to 11, 5 for labels, all for factor.")
    add("--pool", type=int, default=2000, help="Number of test images to average the KL over.")
    add("--seed", type=int, default=0, help="Seed of the image order, the pool and the samples.")
    add("--factor", type=str | None, help="Factor of the data, for kind factor.")
    add("--classes", nargs=2, type=int, default=[0, 1], help="The two classes, for kind between.")
    add(
        "--output",
        type=str | None,
        help="A file, such as fig.pdf, or a folder. Defaults to the folder `traversals` of the first run.",
    )
    add_style_options(parser)
    add(
        "--row_names", nargs="+", type=str, help="Names of rows; see below. $…$ is math, except in PNG without --width."
    )
    add_tracking_option(parser, "the figures of one checkpoint")
