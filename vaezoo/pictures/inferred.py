"""Values of a unit along one factor of the data."""

import torch
from jsonargparse import Namespace
from torch import Tensor

from vaezoo.pictures.grids import grid
from vaezoo.pictures.picture import Figures, Picture, stack
from vaezoo.pictures.subjects import Subject
from vaezoo.types import Batch


def factor(subject: Subject, options: Namespace) -> Figures:
    """Images that differ in one factor, the inferred value of a unit below each (Dupont, 2018, Fig. 9a)."""
    model, column = subject.model, _column(subject, options)
    rows = [along(subject, factors, column, options.steps) for _, factors in subject.images(options)]
    latent = (options.latents or [next(n for n in model.walkable() if not model.latents[n].classes)])[0]
    if latent not in model.latents or model.latents[latent].classes or not model.latents[latent].decoded:
        raise ValueError(f"--latents {latent}: kind factor needs a group of continuous units")
    with torch.no_grad():
        codes = [model.encode(batch.x, batch.y)[latent].code() for batch, _ in rows]
    # The unit that moves most along the factor.
    chosen = options.units or [int(torch.stack([code.std(0) for code in codes]).mean(0).argmax())]
    if outside := [unit for unit in chosen if not 0 <= unit < codes[0].shape[1]]:
        raise ValueError(f"latent {latent!r} has units 0 to {codes[0].shape[1] - 1}, not {outside[0]}")
    figures: Figures = {}
    for unit in chosen:
        strips: list[Picture] = []
        for (batch, values), code in zip(rows, codes, strict=True):
            title = "" if strips else f"{subject.title} · {latent}{unit} inferred along {options.factor}"
            inferred = [f"{value:.2f}" for value in code[:, unit].tolist()]
            strips.append(grid([batch.x], [options.factor], values, title, inferred))
        figures[f"factor_{options.factor}_{latent}{unit}"] = stack(strips)
    return figures


def along(subject: Subject, factors: Tensor, column: int, steps: int | None) -> tuple[Batch, list[str]]:
    """One image for each value of a factor, all else fixed, and these values.

    Args:
        subject: Whose data it is.
        factors: Factor indices of an image, (1, K).
        column: The factor.
        steps: Largest number of values, evenly spread. Defaults to all.
    """
    data = subject.data
    table = data.factors_of(torch.arange(len(data.pictures)))
    others = [k for k in range(table.shape[1]) if k != column]
    ids = (table[:, others] == factors[:, others]).all(1).nonzero().flatten()
    values = table[ids, column].unique()
    if len(values) < 2:
        raise ValueError(f"--factor {data.factor_names[column]}: the data holds no two images that differ in it alone")
    if steps is not None:
        values = values[torch.linspace(0, len(values) - 1, min(steps, len(values))).round().long()]
    shown = torch.stack([ids[(table[ids, column] == value).nonzero()[0, 0]] for value in values])
    x = data.pictures.images(shown).float() / 255
    return Batch(x, data.labels_of(shown), torch.ones(len(x), dtype=torch.bool)), [str(v) for v in values.tolist()]


def _column(subject: Subject, options: Namespace) -> int:
    names = tuple(subject.data.factor_names)
    if options.factor not in names:
        said = "kind factor needs --factor" if options.factor is None else f"--factor {options.factor} is not known"
        raise ValueError(f"{said}: {type(subject.data).__name__} has {', '.join(names) or 'no factors'}")
    return names.index(options.factor)
