"""What an exported model says of itself: names of units and labels, latent groups and their priors."""

from collections.abc import Sequence
from typing import Any

import vaezoo
from vaezoo.metrics.protocols import DecodesLabels, NamesLabels
from vaezoo.models import VAE, LaRVAE, PartedVAE
from vaezoo.nn.latents import ConcreteLatent
from vaezoo.nn.mixture import AttendedHead


def export_facts(model: VAE, label_names: Sequence[str] = ()) -> dict[str, Any]:
    """Plain data about a model, for programs that read its export.

    Args:
        model: The model.
        label_names: Names of its labels; label_0, label_1, … by default.

    Raises:
        ValueError: There are more or fewer names than labels.
    """
    count = label_count(model)
    if label_names and len(label_names) != count:
        raise ValueError(f"label_names {', '.join(label_names)}: {type(model).__name__} has {count} labels: name each")
    return {
        "vaezoo": vaezoo.__version__,
        "model": type(model).__name__,
        "paper": model.paper,
        "step": int(model.step),
        "image_shape": list(model.image_shape),
        "unit_names": model.unit_names,
        "label_names": list(label_names) or [f"label_{k}" for k in range(count)],
        "label_sizes": label_classes(model),
        "groups": [_group(model, name) for name in model.latents],
    }


def label_count(model: VAE) -> int:
    """Number of labels that a model learns from; 0 for models without."""
    return model.label_dim if isinstance(model, LaRVAE) else len(label_classes(model))


def label_classes(model: VAE) -> list[int]:
    """Number of classes of each label; empty where labels are numbers, as LaRVAE's, or none."""
    if isinstance(model, DecodesLabels):
        return list(model.label_sizes)
    return list(model.classes.sizes) if isinstance(model, PartedVAE) else []


def label_names_of(data: object, model: VAE) -> list[str]:
    """Names of a model's labels in the data that it was trained on; none where the data does not tell.

    One-hot labels that a model reads as so many numbers are named after factor and class: shape_0, shape_1, …
    """
    names = list(data.labelled_names) if isinstance(data, NamesLabels) else []
    sizes = getattr(data, "label_sizes", ())
    columns = [f"{name}_{k}" for name, size in zip(names, sizes, strict=False) for k in range(size)]
    return next((found for found in (names, columns) if len(found) == label_count(model)), [])


def _group(model: VAE, name: str) -> dict[str, Any]:
    group = model.latents[name]
    facts = {"name": name, "size": group.size, "decoded": group.decoded, "classes": list(group.classes)}
    return facts | {"prior": _prior(model, name)}


def _prior(model: VAE, name: str) -> dict[str, Any] | None:
    """How to draw from the prior of a group; None for one that vaezoo does not know."""
    group, head = model.latents[name], model.heads[name]
    if isinstance(head, AttendedHead):  # one entry a discrete variable, with a row a class
        components = head.components()
        means = [p.mean.tolist() for p in components]
        return {"kind": "mixture", "mean": means, "std": [p.logvar.mul(0.5).exp().tolist() for p in components]}
    if isinstance(group, ConcreteLatent):
        return {"kind": "categorical", "probabilities": [list(share) for share in group.shares]}
    return {"kind": "normal"} if group.standard_normal else None
