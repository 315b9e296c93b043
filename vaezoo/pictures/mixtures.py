"""PartedVAE's class-related latents u: traversals by quantile, sweeps between classes, and learnt priors."""

from collections.abc import Mapping, Sequence

import torch
from jsonargparse import Namespace
from torch import Tensor

from vaezoo.models import PartedVAE
from vaezoo.nn.latents import Gaussian
from vaezoo.nn.mixture import AttendedHead
from vaezoo.pictures.callback import column_names
from vaezoo.pictures.grids import grid
from vaezoo.pictures.picture import Figures, Picture, stack
from vaezoo.pictures.plots import curves
from vaezoo.pictures.subjects import Start, Subject

STEPS = 11
TAIL = 0.001  # of a component that a walk by quantiles leaves out at either end
WIDTHS = 2.0  # standard deviations about its mean that a component's range holds


def quantiles(subject: Subject, options: Namespace) -> Figures:
    """One picture a class: u by quantiles of the class's component, z in [−3, 3] (Hajimiri et al., 2021, Fig. 4, 9)."""
    model, steps = _parted(subject, "quantiles"), options.steps or STEPS
    span = subject.span(options)
    z_values = torch.linspace(*span, steps)
    shares = torch.linspace(TAIL, 1 - TAIL, steps)
    figures: Figures = {}
    for variable, component in enumerate(components(model)):
        for k in range(len(component.mean)):
            codes = model.centre()
            codes["u"] = model.walk(codes, "c", variable, torch.empty(0))[1][:, k]
            first = variable * component.mean.shape[1]
            u = {f"u{first + d}": (first + d, values) for d, values in enumerate(quantile_values(component, k, shares))}
            z = {f"z{d}": (d, z_values) for d in range(model.latents["z"].units)}
            title = f"{subject.title} · c{variable} class {k}"
            parts: list[Picture] = [
                grid(_placed(model, codes, "u", u), list(u), [f"{share:.3f}" for share in shares.tolist()], title),
                grid(_placed(model, codes, "z", z), list(z), column_names(model, "z", steps, span)),
            ]
            figures[f"quantiles_c{variable}_class{k}"] = stack(parts)
    return figures


def between(subject: Subject, options: Namespace) -> Figures:
    """U swept over the components of two classes, one unit a row (Hajimiri et al., 2021, Fig. 6b)."""
    model, steps = _parted(subject, "between"), options.steps or STEPS
    rows: dict[str, tuple[int, Tensor]] = {}
    for variable, component in enumerate(components(model)):
        if max(options.classes) >= len(component.mean):
            continue
        for d, (low, high) in enumerate(component_range([component], options.classes).T.tolist()):
            unit = variable * component.mean.shape[1] + d
            rows[f"u{unit}  {low:.2f} to {high:.2f}"] = unit, torch.linspace(low, high, steps)
    if not rows:
        sizes = ", ".join(str(size) for size in model.latents["c"].classes)
        raise ValueError(f"--classes {' '.join(map(str, options.classes))}: the variables have {sizes} classes")
    pair = " and ".join(map(str, options.classes))
    figures: Figures = {}
    for start in subject.starts(options):
        images = _placed(model, start.codes, "u", rows)
        shown = images if start.image is None else [torch.cat([start.image, row]) for row in images]
        title = f"{subject.title} · {start.name} · over classes {pair}"
        figures[f"between_{start.name}"] = grid(shown, list(rows), title=title)
    return figures


def priors(subjects: Sequence[Subject], options: Namespace) -> Figures:
    """p(u) of every unit with images along it, of all checkpoints in one (Hajimiri et al., 2021, Fig. 7 and 10)."""
    models = {subject.label if len(subjects) > 1 else "": _parted(subject, "priors") for subject in subjects}
    if len(models) < len(subjects):
        raise ValueError("kind priors: two checkpoints are of runs with the same name")
    starts = [subject.starts(options)[0] for subject in subjects]
    sizes = {model.latents["u"].units for model in models.values()}
    chosen = options.units or range(min(sizes))
    if outside := [unit for unit in chosen if not 0 <= unit < min(sizes)]:
        raise ValueError(f"latent 'u' has units 0 to {min(sizes) - 1}, not {outside[0]}")
    title = subjects[0].title if len(subjects) == 1 else ", ".join(models)
    return {f"prior_u{unit}": prior_picture(models, starts, unit, options.steps or STEPS, title) for unit in chosen}


def prior_picture(
    models: Mapping[str, PartedVAE], starts: Sequence[Start], unit: int, steps: int, title: str
) -> Picture:
    """Curves of p(c=i) · p(u|c=i) over a range that holds all means ± 2σ, and images along it below.

    Args:
        models: Models by name.
        starts: The codes of each, of which one unit of u moves.
        unit: The unit.
        steps: Images of each model.
        title: First words of the title.
    """
    mixtures = [components(model) for model in models.values()]
    variable, dimension = divmod(unit, mixtures[0][0].mean.shape[1])
    low, high = component_range([mixture[variable] for mixture in mixtures])[:, dimension].tolist()
    points, values = torch.linspace(low, high, 200), torch.linspace(low, high, steps)
    lines = {
        f"{name} class {k}".strip(): (points, line)
        for name, model in models.items()
        for k, line in enumerate(model.prior_curves(unit, points))
    }
    curve = curves(lines, f"{title} · p(u{unit})", f"u{unit}", "density", marks=values.tolist())
    rows = [
        _placed(model, start.codes, "u", {"": (unit, values)})[0]
        for model, start in zip(models.values(), starts, strict=True)
    ]
    names = [name or f"u{unit}" for name in models]
    return stack([curve, grid(rows, names, [f"{value:.1f}" for value in values.tolist()])])


def components(model: PartedVAE) -> tuple[Gaussian, ...]:
    """p(u_k|c_k) of each discrete variable, one row a class, (K_k, D)."""
    head = model.heads["u"]
    assert isinstance(head, AttendedHead)
    return tuple(Gaussian(p.mean.detach(), p.logvar.detach()) for p in head.components())


def component_range(given: Sequence[Gaussian], classes: Sequence[int] | None = None) -> Tensor:
    """Range of means ± 2σ over the components of the given classes, (2, D). Defaults to all classes."""
    picked = [(p.mean, p.logvar) if classes is None else (p.mean[classes], p.logvar[classes]) for p in given]
    low = torch.cat([mean - WIDTHS * torch.exp(0.5 * logvar) for mean, logvar in picked]).amin(0)
    high = torch.cat([mean + WIDTHS * torch.exp(0.5 * logvar) for mean, logvar in picked]).amax(0)
    return torch.stack([low, high])


def quantile_values(component: Gaussian, k: int, shares: Tensor) -> Tensor:
    """Quantiles of each dimension of class k's component, (D, S)."""
    mean, sigma = component.mean[k, :, None], torch.exp(0.5 * component.logvar[k, :, None])
    scores: Tensor = torch.special.ndtri(shares.double()).to(mean)
    return mean + sigma * scores


def _placed(
    model: PartedVAE, codes: Mapping[str, Tensor], latent: str, units: Mapping[str, tuple[int, Tensor]]
) -> list[Tensor]:
    """Images while a unit takes values as they are, one row a unit, (S, C, H, W) each."""
    rows = []
    for unit, values in units.values():
        walked = codes[latent][:, None].repeat(1, len(values), 1)
        walked[:, :, unit] = values.to(walked)
        rows.append(model.decode_walk(codes, latent, walked)[0])
    return rows


def _parted(subject: Subject, kind: str) -> PartedVAE:
    if not isinstance(subject.model, PartedVAE):
        raise ValueError(f"kind {kind} needs a PartedVAE, and {subject.path} holds a {type(subject.model).__name__}")
    return subject.model
