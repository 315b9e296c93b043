"""What a page has for each latent unit: a slider or a picker, its name and its KL; and how their values make a code."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vaezoo.explorer.images import Images, in_batches
from vaezoo.models import LaRVAE
from vaezoo.models.base import VAE
from vaezoo.nn.latents import LatentGroup
from vaezoo.regularizers import LabelReconstruction
from vaezoo.regularizers.groups import UNIT_RANGE

REACH = 3.0  # of a slider from 0, in standard deviations of the prior
DRAWS = 512  # of a prior whose reach is not known
DECIMALS = 2  # of a slider
UNUSED = 0.05  # nats: what carries less moves nothing that one could see

Codes = dict[str, Tensor]
"""Code of each latent group, (1, D)."""


@dataclass(frozen=True)
class Control:
    """A slider, or a picker of classes, for one unit.

    Attributes:
        latent: Its latent group.
        number: Its number there.
        moves: The group of the code that it changes: its own, or PartedVAE's "u" for the classes "c".
        title: What it is called, for a label the label's name.
        nats: Mean KL in each model; empty where there is no data.
        span: Least and greatest value of a slider.
        classes: Number of classes of a picker; 0 for a slider.
        is_label: Whether its values are those of a label.
    """

    latent: str
    number: int
    moves: str
    title: str
    nats: tuple[float, ...] = ()
    span: tuple[float, float] = (-REACH, REACH)
    classes: int = 0
    is_label: bool = False

    @property
    def name(self) -> str:
        """Group and number."""
        return f"{self.latent}{self.number}"

    @property
    def text(self) -> str:
        """Title and nats."""
        nats = " | ".join(f"{value:.2f}" for value in self.nats)
        return f"{self.title} · {nats} nats" if nats else self.title

    @property
    def is_used(self) -> bool:
        """Whether any of the models uses it, so far as is known; labels and classes are always there."""
        return self.is_label or bool(self.classes) or not self.nats or max(self.nats) >= UNUSED

    def reach(self, value: float) -> tuple[float, float]:
        """The span, widened to whole tenths where a value lies beyond it."""
        return min(self.span[0], math.floor(10 * value) / 10), max(self.span[1], math.ceil(10 * value) / 10)


def controls_of(models: Sequence[VAE], images: Images | None) -> list[Control]:
    """A control for each unit of the groups that can be moved: classes first, in each group the largest KL first.

    Args:
        models: Models whose latents are alike; names and spans are those of the first.
        images: Images over which the KL is averaged; without them, units stay in their own order.
    """
    nats = [_unit_nats(model, images) for model in models] if images is not None else []
    found: list[Control] = []
    first = models[0]
    for latent in sorted(first.walkable(), key=lambda name: not first.latents[name].classes):
        units = [
            _control(first, latent, number, tuple(float(of[latent][number]) for of in nats), images)
            for number in range(first.latents[latent].units)
        ]
        found += sorted(units, key=lambda control: -max(control.nats, default=0.0))
    return found


def codes_of(controls: Sequence[Control], values: Sequence[float], latents: Mapping[str, LatentGroup]) -> Codes:
    """The code that values of all controls stand for; a picker's class is one-hot."""
    codes = {control.latent: torch.zeros(1, latents[control.latent].size) for control in controls}
    for control, value in zip(controls, values, strict=True):
        code = codes[control.latent]
        if control.classes:
            code[0, _first(control, latents) + int(value)] = 1
        else:
            code[0, control.number] = value
    return codes


def values_of(
    controls: Sequence[Control], codes: Mapping[str, Tensor], latents: Mapping[str, LatentGroup]
) -> tuple[float, ...]:
    """The values of all controls at a code, in hundredths as sliders show them: the opposite of `codes_of`."""
    values: list[float] = []
    for control in controls:
        code = codes[control.latent][0]
        if control.classes:
            first = _first(control, latents)
            values.append(int(code[first : first + control.classes].argmax()))
        else:
            values.append(round(float(code[control.number]), DECIMALS))
    return tuple(values)


def _first(control: Control, latents: Mapping[str, LatentGroup]) -> int:
    """Column of a variable's first class."""
    return sum(latents[control.latent].classes[: control.number])


def _control(model: VAE, latent: str, number: int, nats: tuple[float, ...], images: Images | None) -> Control:
    group, name = model.latents[latent], f"{latent}{number}"
    if group.classes:
        moves, _ = model.walk(model.centre(), latent, number, torch.empty(0))
        return Control(latent, number, moves, name, nats, classes=group.classes[number])
    if _holds_labels(model, latent):
        title = images.column_names(group.units)[number] if images is not None else name
        spans = images.label_spans if images is not None else None
        low, high = (0.0, 1.0) if spans is None or spans.shape[1] != group.units else spans[:, number].tolist()
        return Control(latent, number, latent, title, nats, (low, high if high > low else low + 1), is_label=True)
    return Control(latent, number, latent, name, nats, _span(model, latent, number))


def _holds_labels(model: VAE, latent: str) -> bool:
    """Whether units are labels as they are; with the loss "bce" they are logits, with another range they are scaled."""
    term = model.regularizers["labels"] if isinstance(model, LaRVAE) else None
    if latent != "y" or not isinstance(term, LabelReconstruction):
        return False
    return term.label_loss == "mse" and term.label_range == UNIT_RANGE


def _span(model: VAE, latent: str, number: int) -> tuple[float, float]:
    if model.latents[latent].standard_normal:
        return -REACH, REACH
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        drawn = model.draw(DRAWS)[latent][:, number]
    return math.floor(float(drawn.min())), math.ceil(float(drawn.max()))


def _unit_nats(model: VAE, images: Images) -> dict[str, Tensor]:
    """KL of each unit, the mean over the images to start from."""
    batches = in_batches(images.starts.batch)
    parts = [model.unit_nats(batch.x.to(model.device), batch.y.to(model.device)) for batch in batches]
    shares = [len(batch.x) / len(images.starts.batch.x) for batch in batches]
    return {
        name: torch.stack([part[name] * share for part, share in zip(parts, shares, strict=True)]).sum(0)
        for name in parts[0]
    }
