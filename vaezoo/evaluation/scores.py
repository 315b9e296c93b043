"""Scores of one model on one pool of images, with intervals."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from tqdm import tqdm

from vaezoo.metrics.arguments import read_scores
from vaezoo.metrics.base import FittedMetric, ScoreMetric
from vaezoo.metrics.catalogue import METRICS, build
from vaezoo.metrics.encoded import Encoded, code_columns, known_facts
from vaezoo.metrics.functional.threads import as_they_come
from vaezoo.metrics.protocols import EvaluationData, Split
from vaezoo.metrics.reading import add, bind_known
from vaezoo.metrics.scoring import Evaluation, Result, fitting, labelled, score, warned_of_few
from vaezoo.models.base import VAE
from vaezoo.types import Batch


def evaluate(
    model: VAE,
    data: EvaluationData,
    metrics: Sequence[str] | None = None,
    images: int = 10_000,
    split: Split = "test",
    seed: int = 0,
    resamples: int | None = None,
    latents: Sequence[str] | None = None,
    skip: bool = False,
) -> Evaluation:
    """Encode one pool of images and score it.

    Args:
        model: A model, in evaluation; its device is used.
        data: Where the images come from, set up.
        metrics: Score names, with arguments as in `read_scores`. Defaults to the default scores that apply to the model
            and the data.
        images: Largest number of images.
        split: Split of the images.
        seed: Seed of images, scores and intervals.
        resamples: Bootstrap resamples per interval; 0 for no intervals. Defaults to the number for each score in the
            catalogue.
        latents: Latent groups to read codes from. Defaults to all.
        skip: Skip named metrics that do not apply instead of raising.

    Raises:
        ValueError: A named metric is unknown, or does not apply to the model or the data.
    """
    chosen = read_scores(metrics or [name for name, entry in METRICS.items() if entry.default])
    groups = {label: latents if one.latents is None else one.latents for label, one in chosen.items()}
    code_columns(model, latents)  # an unknown latent is no matter of single metrics
    shells = {label: build(one.name, seed, **one.arguments) for label, one in chosen.items()}
    results: dict[str, Result] = {}
    skipped: dict[str, str] = {}
    fits = partial(fitting, skipped=skipped if skip or not metrics else None)
    for name, shell in shells.items():
        with fits(name):
            code_columns(model, groups[name])
            bind_known(shell, **known_facts(model, data, groups[name]))
            _check_held_out(shell, split)

    @torch.no_grad()
    def read(names: Sequence[str], pair: tuple[Batch, Tensor]) -> tuple[int, dict[str, list[Tensor]]]:
        encoded, values = Encoded(model, *pair, data), {}
        for name in [name for name in names if name not in skipped]:
            encoded.latents = groups[name]
            with fits(name):
                values[name] = encoded.values(shells[name])
        return len(pair[1]), values

    def encode(part: Split, names: Sequence[str], training: bool = False) -> int:
        count = 0
        batches = data.evaluation_batches(images, part, seed, model.device)
        shown = tqdm(batches, "encoding", unit="batch", leave=False, disable=None)
        # A batch a core is faster than one batch on all: threads need not wait for one another in every layer.
        jobs = -1 if model.device.type == "cpu" else 1
        for rows, values in as_they_come(partial(read, names), shown, jobs):
            count += rows
            for name in [name for name in values if name not in skipped]:
                with fits(name):
                    add(shells[name], values[name], training)
        return count

    count = encode(split, list(shells))
    fitted = [name for name, shell in shells.items() if isinstance(shell, FittedMetric) and name not in skipped]
    training = encode("train", fitted, training=True) if fitted else 0
    for name in tqdm([name for name in shells if name not in skipped], "scores", leave=False, disable=None):
        with fits(name):
            pools = METRICS[chosen[name].name].resamples if resamples is None else resamples
            results[name] = labelled(score(shells[name], pools, seed), chosen[name])
            if name in fitted:
                results[name].definition["fitted_on"] = {"split": "train", "images": training}
            elif (known := len(shells[name].tables()[0])) < count:
                results[name].definition["images"] = known  # the others lack a factor or a label
    in_order = {name: skipped[name] for name in shells if name in skipped}
    return warned_of_few(Evaluation(results, in_order, count))


def _check_held_out(shell: ScoreMetric, split: Split) -> None:
    if isinstance(shell, FittedMetric) and split in ("train", "all"):
        raise ValueError(f"it is fitted on training images, which split {split!r} holds: score test or val images")
