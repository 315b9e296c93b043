"""Walks along units: one image × all units, many starts × one unit, classes × one unit, units ranked by their KL."""

from collections.abc import Sequence

import torch
from jsonargparse import Namespace
from torch import Tensor

from vaezoo.pictures.callback import column_names
from vaezoo.pictures.grids import grid
from vaezoo.pictures.picture import Animation, Figures
from vaezoo.pictures.subjects import Start, Subject, Unit

STEPS = 11


def units(subject: Subject, options: Namespace) -> Figures:
    """A picture, an animation and strips of each start and latent group, one unit a row."""
    found = subject.units(options)
    figures: Figures = {}
    for start in subject.starts(options):
        for latent in dict.fromkeys(unit.latent for unit in found):
            rows = {unit.name: walk(subject, start, unit, options) for unit in found if unit.latent == latent}
            names, columns = _row_names(found, latent), columns_of(subject, latent, start, options)
            shown = [beside(start, row) for row in rows.values()]
            stem = f"{start.name}_{latent}"
            figures[f"{stem}"] = grid(shown, names, columns, f"{subject.title} · {start.name} · {latent}")
            for name, row in zip(rows, shown, strict=True):
                figures[f"{stem}/{name}"] = grid([row], [name], columns)
            figures[f"{stem}.gif"] = animation(rows)
    return figures


def ranked(subject: Subject, options: Namespace) -> Figures:
    """All units of all groups, those with the largest KL first, nats beside them (Dupont, 2018, Fig. 8)."""
    found = subject.ranked(subject.chosen(options), options)
    continuous = [unit.latent for unit in found if not subject.model.latents[unit.latent].classes]
    figures: Figures = {}
    for start in subject.starts(options):
        rows = [beside(start, walk(subject, start, unit, options)) for unit in found]
        columns = columns_of(subject, continuous[0], start, options) if continuous else ()
        title = f"{subject.title} · units by KL, mean over up to {options.pool:,} images"
        figures[f"ranked_{start.name}"] = grid(rows, [_with_nats(unit) for unit in found], columns, title)
    return figures


def starts(subject: Subject, options: Namespace) -> Figures:
    """One picture a unit, one start a row (Dupont, 2018, Fig. 3; Kumar et al., 2018, Fig. 3 and 4)."""
    rows = subject.draws(options) if options.prior else subject.starts(options)
    figures: Figures = {}
    for unit in subject.units(options):
        images = [beside(start, walk(subject, start, unit, options)) for start in rows]
        columns = columns_of(subject, unit.latent, rows[0], options)
        title = f"{subject.title} · {_with_nats(unit)}"
        figures[f"starts_{unit.name}"] = grid(images, [start.name for start in rows], columns, title)
    return figures


def classes(subject: Subject, options: Namespace) -> Figures:
    """One picture a continuous unit and discrete variable, one class a row (Dupont, 2018, Fig. 5 and 6)."""
    model = subject.model
    discrete = next((name for name in model.walkable() if model.latents[name].classes), None)
    if discrete is None:
        raise ValueError(f"kind classes needs a model with classes, and {type(model).__name__} has none")
    moving = [unit for unit in subject.units(options) if not model.latents[unit.latent].classes]
    figures: Figures = {}
    for start in subject.starts(options):
        for variable, size in enumerate(model.latents[discrete].classes):
            group, walked = model.walk(start.codes, discrete, variable, torch.empty(0))  # (1, K, D)
            codes = {name: code.repeat(size, 1) for name, code in start.codes.items()} | {group: walked[0]}
            for unit in moving:
                images = walk(subject, Start(start.name, codes), unit, options)
                columns = column_names(model, unit.latent, options.steps or STEPS, subject.span(options))
                rows = [f"class {k}" for k in range(size)]
                title = f"{subject.title} · {start.name} · {discrete}{variable} by {_with_nats(unit)}"
                name = f"classes_{start.name}_{discrete}{variable}_{unit.name}"
                figures[name] = grid(list(images), rows, columns, title)
    return figures


def walk(subject: Subject, start: Start, unit: Unit, options: Namespace) -> Tensor:
    """Images along a unit, (S, C, H, W), or (B, S, C, H, W) for codes of B rows."""
    model, values = subject.model, torch.linspace(*subject.span(options), options.steps or STEPS)
    with torch.no_grad():
        images = model.decode_walk(start.codes, *model.walk(start.codes, unit.latent, unit.number, values))
    return images[0] if len(images) == 1 else images


def beside(start: Start, images: Tensor) -> Tensor:
    """Images with the one that they come from before them."""
    return images if start.image is None else torch.cat([start.image, images])


def columns_of(subject: Subject, latent: str, start: Start, options: Namespace) -> list[str]:
    """What stands above the columns of a walk."""
    names = column_names(subject.model, latent, options.steps or STEPS, subject.span(options))
    return names if start.image is None else ["image", *names]


def animation(rows: dict[str, Tensor]) -> Animation:
    """All units at once, there and back."""
    frames = []
    for t in range(max(len(images) for images in rows.values())):
        now = torch.stack([images[min(t, len(images) - 1)] for images in rows.values()])
        frames.append(grid([now], columns=list(rows)).pixels())
    return Animation(torch.stack([*frames, *frames[-2:0:-1]]))


def _row_names(found: Sequence[Unit], latent: str) -> list[str]:
    return [_with_nats(unit) for unit in found if unit.latent == latent]


def _with_nats(unit: Unit) -> str:
    return unit.name if unit.nats is None else f"{unit.name}  {unit.nats:.2f} nats"
