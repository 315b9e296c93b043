"""Tables on Weights & Biases: test images and what a model makes of them; scores with their intervals."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from vaezoo.metrics.encoded import Encoded
from vaezoo.metrics.protocols import DecodesLabels, EvaluationData, InfersLabels, NamesLabels, Split
from vaezoo.metrics.scoring import Evaluation
from vaezoo.models.base import VAE
from vaezoo.study.findings import Score

IMAGES = 32


def scores_of_evaluation(found: Evaluation) -> dict[str, Score]:
    """Scores of an evaluation by name, each with the ends of its interval."""
    scores: dict[str, Score] = {}
    for result in found.results.values():
        for name, value in result.scores.items():
            low, high = result.intervals.get(name, (None, None))
            scores[name] = (float(value), low, high)
    return scores


def score_table(runs: Mapping[str, Mapping[str, Score]]) -> Any:
    """One row a run; a score has a column, and one for each end of its interval where some run has one.

    Args:
        runs: Scores by the name of the run.
    """
    import wandb

    names = dict.fromkeys(name for scores in runs.values() for name in scores)
    wide = [name for name in names if any(scores[name][1] is not None for scores in runs.values() if name in scores)]
    nothing: Score = (float("nan"), None, None)
    ends = {name: ("", " low", " high") if name in wide else ("",) for name in names}
    columns: list[str | int] = ["run", *(f"{name}{end}" for name in names for end in ends[name])]
    rows = [
        [run, *(value for name in names for value in scores.get(name, nothing)[: len(ends[name])])]
        for run, scores in runs.items()
    ]
    return wandb.Table(columns=columns, data=rows, allow_mixed_types=True)


@torch.no_grad()
def image_table(model: VAE, data: EvaluationData, split: Split, seed: int, images: int = IMAGES) -> Any:
    """Images with their reconstructions, codes, factors and inferred labels, one a row.

    Args:
        model: The model, in evaluation.
        data: Where the images come from.
        split: Which of them.
        seed: Seed of the choice.
        images: How many.
    """
    import wandb

    batch, factors = next(iter(data.evaluation_batches(images, split, seed, model.device)))
    encoded = Encoded(model, type(batch)(*(part[:images] for part in batch)), factors[:images], data)
    parts = {
        "codes": _named(unit_names(model), encoded.all_codes),
        "factors": _named(data.factor_names, factors[:images]),
        "labels": _inferred_labels(encoded, data),
    }
    numbers = {name: column for columns in parts.values() for name, column in columns.items()}
    pictures = zip(_pictures(encoded.images), _pictures(encoded.reconstructions), strict=True)
    rows = [
        [wandb.Image(image), wandb.Image(again), *(column[row] for column in numbers.values())]
        for row, (image, again) in enumerate(pictures)
    ]
    return wandb.Table(columns=["image", "reconstruction", *numbers], data=rows)


def unit_names(model: VAE) -> list[str]:
    """Names of the columns of a model's codes: group and number."""
    return [f"{name}{unit}" for name, group in model.decoded.items() for unit in range(group.size)]


def _inferred_labels(encoded: Encoded, data: Any) -> dict[str, list[float]]:
    if isinstance(encoded.model, InfersLabels):
        found = encoded.inferred_labels
    elif isinstance(encoded.model, DecodesLabels):
        found = encoded.decoded_labels
    else:
        return {}
    known = data.labelled_names if isinstance(data, NamesLabels) else ()
    names = known if len(known) == found.shape[1] else [str(label) for label in range(found.shape[1])]
    return _named([f"inferred {name}" for name in names], found)


def _named(names: Any, values: Tensor) -> dict[str, list[float]]:
    return dict(zip(names, values.float().cpu().T.tolist(), strict=True))


def _pictures(images: Tensor) -> Any:
    """Images in [0, 1] as W&B takes them, (B, H, W, C) or without the last axis where there is one channel."""
    pixels = images.float().clamp(0, 1).mul(255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
    return pixels[..., 0] if pixels.shape[-1] == 1 else pixels
