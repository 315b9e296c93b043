"""Whether a model survives half precision: its codes, and its scores where its data is here."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from vaezoo.models import VAE
from vaezoo.runs.loading import load
from vaezoo.sharing.saving import save_pretrained
from vaezoo.sharing.scores import again, differing, largest_change

IMAGES = 1000
MOST = 0.05
"""Largest change of a code, as a share of the codes' standard deviation, that is taken for none."""


def halved(model: VAE) -> VAE:
    """The model as it is read back after it was stored in half precision."""
    with TemporaryDirectory() as folder:
        return load(save_pretrained(model, Path(folder, "half"), half=True))


@torch.no_grad()
def code_change(model: VAE, other: VAE, images: Tensor) -> float:
    """Largest change of a code, as a share of the standard deviation of all codes."""
    before, after = model.represent(images), other.represent(images)
    return float((after - before).abs().max() / before.std().clamp(min=1e-12))


def checked_half(model: VAE, data: Any, scores: Mapping[str, Any] | None) -> tuple[Mapping[str, Any] | None, list[str]]:
    """Compare a model with itself in half precision.

    Args:
        model: The model.
        data: Its data, set up; None where it is not here, and then noise is encoded.
        scores: Its scores, which are computed again where the data is here.

    Returns:
        Scores of the model in half precision, or those that were given, and what was found, in words.

    Raises:
        ValueError: Codes or scores change too much.
    """
    stored = halved(model)
    if data is None:
        images, what = torch.rand(IMAGES // 4, *model.image_shape, generator=torch.Generator().manual_seed(0)), "noise"
    else:
        batches = data.evaluation_batches(IMAGES, data.evaluation_split, 0, torch.device("cpu"))
        images = torch.cat([batch.floats().x for batch, _ in batches])
        what = f"{len(images):,} {data.evaluation_split} images"
    change = code_change(model, stored, images)
    lines = [f"half precision: codes of {what} change by {change:.2g} of their standard deviation at most"]
    if not change <= MOST:
        raise ValueError(f"{lines[0]}, which is more than {MOST}: leave out --half")
    if scores is None or data is None:
        why = "there are none" if scores is None else "the data is not here"
        return scores, [*lines, f"half precision: scores were not computed again, as {why}"]
    found = again(stored, data, scores)
    if wrong := differing(scores, found):
        raise ValueError(f"half precision changes scores: {'; '.join(wrong)}: leave out --half")
    name, most = largest_change(scores, found)
    return found, [*lines, f"half precision: scores hold; {name} changes most, by {most:.2g}; the new ones are kept"]
