"""`vaezoo traverse`: the papers' figures of what latent units stand for, from checkpoints."""

from argparse import RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import torch
from jsonargparse import ArgumentParser, DefaultHelpFormatter, Namespace
from lightning.pytorch import LightningDataModule
from PIL import Image
from torch import Tensor
from torchvision.utils import save_image

from vaezoo.models import LaRVAE
from vaezoo.pictures import inferred, mixtures, walks
from vaezoo.pictures.grids import stack
from vaezoo.pictures.labels import label_traversals
from vaezoo.pictures.positions import POINTS, VARIANTS, DrawsPositions, position_pictures
from vaezoo.pictures.subjects import Subject
from vaezoo.runs.additions import Additions, Track, add_tracking_option, is_tracked
from vaezoo.runs.data import RunData, split_data_options
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.loading import load
from vaezoo.text import printable

FRAME = 120  # milliseconds
LABEL_STEPS = 5  # Nie et al., 2020, Fig. 4
Figures = dict[str, Tensor]
Kind = Literal[
    "units", "ranked", "starts", "classes", "factor", "quantiles", "between", "priors", "labels", "positions"
]
EPILOG = """\
kinds of figures:
  units      each start × the units of each group, with animations and strips (default)
  ranked     units of all groups by their KL over --pool images, nats printed (JointVAE Fig. 8)
  starts     several images, or --draws from the --prior, × one unit (JointVAE Fig. 3; DIP-VAE Fig. 3 to 6)
  classes    classes × one continuous unit (JointVAE Fig. 5, 6)
  factor     a unit's value inferred from images along --factor (JointVAE Fig. 9a)
  quantiles  u by quantiles of each class's component, z in [-3, 3], one picture a class (PartedVAE Fig. 4, 9)
  between    u swept over the components of --classes A B (PartedVAE Fig. 6b)
  priors     p(u) of every unit with images along it, all checkpoints in one plot (PartedVAE Fig. 7, 10)
  labels     labels from least to greatest, checkpoints stacked (LaRVAE Fig. 4, E.3, E.4)
  positions  codes over positions on a scale of -3 to 3, and the map of the labels (WeLa-VAE Fig. 1, 3b, 4, 5)

--image FILE starts from a picture of your own and shows it beside its edits (JointVAE Fig. 9b).
--data NAME and --data.ARG VALUE choose other data than the run's; --data.help NAME lists arguments.
"""


class _Help(RawDescriptionHelpFormatter, DefaultHelpFormatter):
    """Keeps the lines of the kinds."""


def run_traverse(args: Sequence[str], data_class: type[LightningDataModule], track: Track) -> None:
    """Draw one kind of figure of checkpoints.

    Args:
        args: Command line after `vaezoo traverse`.
        data_class: Base of the datamodules to choose from.
        track: Adds the figures of a checkpoint to its run on Weights & Biases.
    """
    own, data_args = split_data_options(args)
    options = _parser().parse_args(own)
    _check(options)
    data = RunData(data_class, data_args)
    subjects = [Subject(Path(path), load(path), data) for path in options.ckpt_path]
    folder = Path(options.output) if options.output else RunFolder.of(subjects[0].path).traversals
    figures = KINDS[options.kind](subjects, options)
    for name, figure in figures.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".gif":
            _animate(figure, path)
        else:
            save_image(figure, path)
    print(printable(f"{options.kind}: {folder} ({len(figures)} files)"))
    if options.wandb and len(subjects) == 1 and is_tracked(subjects[0].path):  # figures of several are of no one run
        pictures = {name: folder / name for name in figures}
        track(Additions(subjects[0].path, subjects[0].model, "traverse", pictures=pictures))


def labels(subjects: Sequence[Subject], options: Namespace) -> Figures:
    """Labels of random images from least to greatest, models stacked (Nie et al., 2020, Fig. 4, E.3, E.4)."""
    models: dict[str, LaRVAE] = {}
    for subject in subjects:
        if not isinstance(subject.model, LaRVAE):
            name = type(subject.model).__name__
            raise ValueError(f"--kind labels needs LaRVAE checkpoints, and {subject.path} holds a {name}")
        label = subject.label if subject.label not in models else f"{subject.label} {len(models) + 1}"
        models[label] = subject.model
    data, size = subjects[0].data, next(iter(models.values())).label_dim
    if any(model.label_dim != size for model in models.values()):
        raise ValueError("--kind labels: the checkpoints have different numbers of labels")
    if outside := [unit for unit in options.units or () if not 0 <= unit < size]:
        raise ValueError(f"there are labels 0 to {size - 1}, not {outside[0]}")
    figures = {}
    for i, (batch, _) in zip(options.image_indices, subjects[0].images(options), strict=True):
        if batch.y.shape[1] != size or bool(batch.y.isnan().any()):
            raise ValueError(f"--image_indices {i}: the model has {size} labels, and not all of this image are known")
        title = f"{', '.join(models)} · labels of image{i}"
        steps = options.steps or LABEL_STEPS
        figures[f"labels_image{i}.png"] = label_traversals(models, batch, data, steps, title, options.units or ())
    return figures


def positions(subject: Subject, options: Namespace) -> Figures:
    """Codes over positions, and the map of the labels (Margonis et al., 2020, Fig. 1, 3b, 4 and 5)."""
    data, found = subject.data, {}
    if isinstance(data, DrawsPositions):
        found = position_pictures(subject.model, data, options.steps or POINTS, VARIANTS, subject.title)
    if not found:
        raise ValueError(f"--kind positions needs data with positions, and {type(data).__name__} has none")
    return {f"{name}.png": picture for name, picture in found.items()}


def stacked(draw: Callable[[Subject, Namespace], Figures]) -> Callable[[Sequence[Subject], Namespace], Figures]:
    """Draw each checkpoint by itself; figures of the same name go below each other."""

    def together(subjects: Sequence[Subject], options: Namespace) -> Figures:
        found = [draw(subject, options) for subject in subjects]
        if len(found) == 1:
            return found[0]
        names = dict.fromkeys(name for figures in found for name in figures)
        return {
            name: stack([figures[name] for figures in found if name in figures])
            for name in names
            if not name.endswith(".gif")
        }

    return together


KINDS: dict[Kind, Callable[[Sequence[Subject], Namespace], Figures]] = {
    "units": stacked(walks.units),
    "ranked": stacked(walks.ranked),
    "starts": stacked(walks.starts),
    "classes": stacked(walks.classes),
    "factor": stacked(inferred.factor),
    "quantiles": stacked(mixtures.quantiles),
    "between": stacked(mixtures.between),
    "priors": mixtures.priors,
    "labels": labels,
    "positions": stacked(positions),
}


def _animate(frames: Tensor, path: Path) -> None:
    pictures = [Image.fromarray(frame.mul(255).byte().permute(1, 2, 0).numpy()) for frame in frames]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=FRAME, loop=0)


def _check(options: Namespace) -> None:
    for path in options.ckpt_path:
        if not Path(path).is_file():
            raise FileNotFoundError(f"no checkpoint at {path}")
    for name, least in (("steps", 1), ("pool", 1), ("draws", 1), ("seed", 0)):
        if options[name] is not None and options[name] < least:
            raise ValueError(f"--{name} must be {least} or more, not {options[name]}")
    for name in ("image_indices", "classes"):
        if min(options[name]) < 0:
            raise ValueError(f"--{name} must be 0 or more, not {min(options[name])}")
    if options.span is not None and not torch.tensor(options.span).isfinite().all():
        raise ValueError(f"--span must be two finite numbers, not {options.span}")


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="vaezoo traverse",
        description="The papers' figures of what latent units stand for, from checkpoints.",
        epilog=EPILOG,
        formatter_class=_Help,
        exit_on_error=False,
    )
    add = parser.add_argument
    add("--ckpt_path", nargs="+", type=str, required=True, help="Checkpoints; figures of several are stacked.")
    add("--kind", type=Kind, default="units", help="Kind of figure; see below.")
    add("--image_indices", nargs="+", type=int, default=[0], help="Images to start from, by number in the test images.")
    add("--image", nargs="+", type=str, help="Picture files to start from instead; resized to the model's size.")
    add("--prior", action="store_true", help="Start from the middle of the prior, or from draws for --kind starts.")
    add("--draws", type=int, default=8, help="Draws from the prior.")
    add("--latents", nargs="+", type=str, help="Latent groups; all that are decoded by default.")
    add("--units", nargs="+", type=int, help="Units, or labels; all by default, those with the largest KL first.")
    add(
        "--span",
        nargs=2,
        type=float,
        help="First and last value; -3 3 for WeLaVAE and PartedVAE by default, else -2 2.",
    )
    add("--steps", type=int | None, help="Values of a continuous unit; 11 by default, 5 for labels, all for factor.")
    add("--pool", type=int, default=2000, help="Test images over which the KL of units is averaged.")
    add("--seed", type=int, default=0, help="Seed of the order of images, the pool and draws.")
    add("--factor", type=str | None, help="Factor of the data, for --kind factor.")
    add("--classes", nargs=2, type=int, default=[0, 1], help="The two classes, for --kind between.")
    add("--output", type=str | None, help="Folder; `traversals` in the first run's by default.")
    add_tracking_option(parser, "the figures of one checkpoint")
    return parser
