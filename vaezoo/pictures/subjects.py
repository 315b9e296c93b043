"""What figures are drawn of: checkpoints with their data, the codes that walks start from, and units by their KL."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jsonargparse import Namespace
from PIL import Image
from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor

from vaezoo.metrics.reading import as_indices
from vaezoo.models import PartedVAE, WeLaVAE
from vaezoo.models.base import VAE
from vaezoo.runs.data import RunData, require_fitting_images
from vaezoo.runs.folder import RunFolder
from vaezoo.types import Batch

FORMATS = ("PNG", "JPEG", "BMP", "WEBP")  # no reader of another format is ever started


class Start(NamedTuple):
    """Codes that a walk starts from.

    Attributes:
        name: How files and rows call it.
        codes: Code of each latent group, (1, D).
        image: The encoded image, (1, C, H, W); None if there is none.
    """

    name: str
    codes: dict[str, Tensor]
    image: Tensor | None = None


class Unit(NamedTuple):
    """A unit of a latent group, and its mean KL where it was measured."""

    latent: str
    number: int
    nats: float | None = None

    @property
    def name(self) -> str:
        """Group and number."""
        return f"{self.latent}{self.number}"


@dataclass(frozen=True)
class Subject:
    """A checkpoint.

    Attributes:
        path: Its file.
        model: The model in it, in evaluation.
        run_data: Opens the data of runs.
    """

    path: Path
    model: VAE
    run_data: RunData

    @cached_property
    def data(self) -> Any:
        """Its data, opened when a figure first asks for it."""
        data, _ = self.run_data.of(RunFolder.of(self.path))
        require_fitting_images(self.path, self.model, data)
        return data

    @property
    def label(self) -> str:
        """Name of the run or shared model, or of the file where it lies in neither."""
        run = RunFolder.of(self.path.resolve())
        if self.path.name == run.weights.name:
            return run.path.name
        return run.path.parent.name if self.path.resolve().parent == run.checkpoints else self.path.stem

    @property
    def title(self) -> str:
        """Run, model and step."""
        return f"{self.label} · {type(self.model).__name__} · step {int(self.model.step)}"

    def span(self, options: Namespace) -> tuple[float, float]:
        """First and last value of a walk: 3 from 0 where the model's paper says so, else 2."""
        reach = 3.0 if isinstance(self.model, (WeLaVAE, PartedVAE)) else 2.0
        low, high = options.span or (-reach, reach)
        return low, high

    def starts(self, options: Namespace) -> list[Start]:
        """Starting points: the centre of the prior, your own image files, or images of the data."""
        if options.prior:
            return [Start("prior", self.model.centre())]
        if options.image:
            shape = self.model.image_shape
            return [self._encoded(Path(file).stem, read_picture(Path(file), shape)) for file in options.image]
        return [
            self._encoded(f"image{i}", batch.x, batch.y)
            for i, (batch, _) in zip(options.image_indices, self.images(options), strict=True)
        ]

    def draws(self, options: Namespace) -> list[Start]:
        """Draws from the prior."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            codes = self.model.draw(options.draws)
        return [
            Start(f"draw{i}", {name: code[i : i + 1] for name, code in codes.items()}) for i in range(options.draws)
        ]

    def images(self, options: Namespace) -> list[tuple[Batch, Tensor]]:
        """The images of `--image_indices` in the evaluation split, each with its factor indices (1, K)."""
        most = max(options.image_indices) + 1
        split, cpu, found = self.data.evaluation_split, torch.device("cpu"), []
        for batch, factors in self.data.evaluation_batches(most, split, options.seed, cpu):
            indices = as_indices(factors)
            found += [(batch.at(torch.tensor([i])), indices[i : i + 1]) for i in range(len(batch.x))]
        if len(found) < most:
            raise ValueError(
                f"--image_indices {most - 1}: the data holds {len(found)} {split} images, 0 to {len(found) - 1}"
            )
        return [found[i] for i in options.image_indices]

    def batch(self, options: Namespace) -> Batch:
        """The images of `--image_indices` as one batch."""
        return Batch(*(torch.cat(fields) for fields in zip(*(one for one, _ in self.images(options)), strict=True)))

    def units(self, options: Namespace) -> list[Unit]:
        """Units by name, as they are asked for, or all in the order of their KL where data is read."""
        chosen = self.chosen(options)
        return chosen if options.units or options.prior else self.ranked(chosen, options)

    def chosen(self, options: Namespace) -> list[Unit]:
        """The units of `--latents` and `--units`, in their own order."""
        latents = options.latents or self.model.walkable()
        if unknown := [latent for latent in latents if latent not in self.model.walkable()]:
            raise ValueError(f"latent {unknown[0]!r} is not one of {', '.join(self.model.walkable())}")
        sizes = {latent: self.model.latents[latent].units for latent in latents}
        for latent, size in sizes.items():
            if outside := [unit for unit in options.units or () if not 0 <= unit < size]:
                raise ValueError(f"latent {latent!r} has units 0 to {size - 1}, not {outside[0]}")
        return [Unit(latent, unit) for latent, size in sizes.items() for unit in options.units or range(size)]

    def ranked(self, units: Sequence[Unit], options: Namespace) -> list[Unit]:
        """Units with their KL, the mean over `--pool` images, the largest first (Dupont, 2018, Fig. 8)."""
        total: dict[str, Tensor] = {}
        split, cpu, count = self.data.evaluation_split, torch.device("cpu"), 0
        for batch, _ in self.data.evaluation_batches(options.pool, split, options.seed, cpu):
            for name, nats in self.model.unit_nats(batch.x, batch.y).items():
                total[name] = total.get(name, torch.zeros(())) + nats * len(batch.x)
            count += len(batch.x)
        measured = [unit._replace(nats=float(total[unit.latent][unit.number]) / count) for unit in units]
        return sorted(measured, key=lambda unit: -(unit.nats or 0.0))

    @torch.no_grad()
    def _encoded(self, name: str, x: Tensor, y: Tensor | None = None) -> Start:
        return Start(name, {group: q.mode() for group, q in self.model.encode(x, y).items()}, x)


def read_picture(path: Path, image_shape: tuple[int, int, int]) -> Tensor:
    """A picture file as a model reads it: grey or RGB, resized as a whole, in [0, 1], (1, C, H, W).

    Raises:
        ValueError: It is none of a few formats, is damaged, or is too large.
    """
    channels, height, width = image_shape
    try:
        with Image.open(path, formats=FORMATS) as picture:
            plain = picture.convert("L" if channels == 1 else "RGB")
        pixels: Tensor = pil_to_tensor(plain.resize((width, height), Image.Resampling.BILINEAR))
        return pixels[None].float() / 255
    except FileNotFoundError as error:
        raise FileNotFoundError(f"--image {path}: no such file") from error
    # PIL raises SyntaxError for damaged PNG files.
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise ValueError(f"--image {path} cannot be read ({error}): give a {', '.join(FORMATS)} file") from error
