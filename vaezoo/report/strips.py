"""What a trained model does, drawn once: reconstructions, the KL of its units, and strips along each of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from vaezoo.models.base import VAE
from vaezoo.nn.latents import ConcreteLatent
from vaezoo.report.pictures import Picture, from_tensors
from vaezoo.report.runs import Run
from vaezoo.runs.data import RunData
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.loading import load
from vaezoo.text import reason
from vaezoo.types import Batch

SPAN = (-2.0, 2.0)
PRIOR_IMAGES = 64  # of the model's own, where there are no others to measure KL on


class Images(NamedTuple):
    """Images of a run's data, and the part of it that they come from."""

    batch: Batch
    split: str


class Limits(NamedTuple):
    """What a run may take of the page.

    Attributes:
        starts: Images that traversals start from, beside the middle of the prior.
        units: Traversed units.
        steps: Values of a continuous unit.
        images: Reconstructed images.
        side: Longest side of an image in pixels.
        picture_side: Longest side of a picture from the run's folder.
        points: Points of a curve.
    """

    starts: int = 2
    units: int = 16
    steps: int = 11
    images: int = 8
    side: int = 96
    picture_side: int = 1200
    points: int = 400

    @classmethod
    def for_runs(cls, runs: int) -> "Limits":
        """Less for each run where there are many: about 1 MB for each of a few, 15 MB for 50."""
        if runs <= 5:
            return cls()
        return cls(1, 12, 9, 8, 64, 800, 250) if runs <= 20 else cls(1, 10, 7, 6, 64, 600, 120)


@dataclass
class Unit:
    """A unit of the latents.

    Attributes:
        name: Its group and number.
        nats: Its KL, the mean over images.
        values: What it is set to, frame by frame; empty for a unit that is not drawn.
        strips: One strip of frames for each start.
    """

    name: str
    nats: float
    values: list[str] = field(default_factory=list)
    strips: list[Picture] = field(default_factory=list)


@dataclass
class Drawn:
    """Everything that was drawn from a checkpoint.

    Attributes:
        checkpoint: Name of the file.
        step: Training batches that the model has seen.
        measured: What the KL was measured on.
        starts: What traversals start from.
        units: All units, those with the largest KL first.
        reconstructions: Images above their reconstructions, or samples where there are no images.
    """

    checkpoint: str
    step: int
    measured: str
    starts: list[str]
    units: list[Unit]
    reconstructions: Picture


def draw_run(run: Run, images: RunData, limits: Limits) -> Drawn | None:
    """Draw what a run's checkpoint has learnt; where something fails, the run gets a note.

    Args:
        run: A run.
        images: Gives the first images of a run, as `Images`.
        limits: How much to draw.
    """
    if run.checkpoint is None:
        return None
    try:
        model = load(run.checkpoint)
    except Exception as error:  # of another version, or cut off
        run.notes.append(f"{run.checkpoint.name} could not be loaded: {reason(error)}")
        return None
    with _fixed_seed():
        try:
            found, _ = images.of(RunFolder(run.path))
            if found.batch.x.shape[1:] != torch.Size(model.image_shape):
                raise ValueError(f"images are {tuple(found.batch.x.shape[1:])}, the model reads {model.image_shape}")
            return draw(model, run.checkpoint, found, limits)
        except Exception as error:  # data that is not here, or that has changed
            run.notes.append(f"no images of the data, drawn from the prior instead: {reason(error)}")
        try:
            return draw(model, run.checkpoint, None, limits)
        except Exception as error:
            run.notes.append(f"nothing could be drawn: {reason(error)}")
    return None


@torch.no_grad()
def draw(model: VAE, checkpoint: Path, images: Images | None, limits: Limits) -> Drawn:
    """Draw from images, or from the prior alone where there are none."""
    if images is None:
        x = model.sample(PRIOR_IMAGES)
        rows, measured, starts = [x[: limits.images]], f"{len(x)} images sampled from the prior", []
        nats = model.unit_nats(x)
    else:
        x, out = images.batch.x, model(images.batch)
        rows = [x[: limits.images], out.reconstruction.sigmoid()[: limits.images]]
        measured = f"{len(x)} {images.split} images"
        starts = [f"{images.split} image {i + 1}" for i in range(min(limits.starts, len(x)))]
        nats = {name: q.kl().mean(0) for name, q in out.posterior.items()}
    units = _ranked({name: nats[name] for name in model.walkable()})
    for name, unit, entry in _chosen(units, limits.units):
        walks = [*model.traverse(None, name, [unit], limits.steps, SPAN)[0]]
        if images is not None:
            first = images.batch.x[: limits.starts], images.batch.y[: limits.starts]
            walks = [*model.traverse(first[0], name, [unit], limits.steps, SPAN, first[1])[0], *walks]
        entry.values = _values(model, name, len(walks[0]))
        entry.strips = [from_tensors(entry.name, [frames], limits.side) for frames in walks]
    what = "samples of the prior" if images is None else "images above, reconstructions below"
    picture = from_tensors(what, rows, limits.side, gap=2)
    entries = [entry for *_, entry in units]
    return Drawn(checkpoint.name, int(model.step), measured, [*starts, "middle of the prior"], entries, picture)


def _ranked(nats: dict[str, Tensor]) -> list[tuple[str, int, Unit]]:
    units = [
        (name, i, Unit(f"{name}{i}", value))
        for name, values in nats.items()
        for i, value in enumerate(values.nan_to_num(0).tolist())
    ]
    return sorted(units, key=lambda entry: -entry[2].nats)


def _chosen(units: list[tuple[str, int, Unit]], count: int) -> list[tuple[str, int, Unit]]:
    """The first units, and the first of each group that would have none."""
    best = {name: unit for name, unit, _ in reversed(units)}
    return [entry for rank, entry in enumerate(units) if rank < count or best[entry[0]] == entry[1]]


def _values(model: VAE, name: str, frames: int) -> list[str]:
    if isinstance(model.latents[name], ConcreteLatent):
        return [f"class {k}" for k in range(frames)]
    values = torch.linspace(*SPAN, frames).tolist()
    return [f"{round(value, 2) + 0.0:.2f}".replace("-", "−") for value in values]  # adding 0 turns -0 into 0


@contextmanager
def _fixed_seed() -> Iterator[None]:
    """The same run gives the same page, and the caller's random numbers stay as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
