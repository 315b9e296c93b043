"""The images of a page: those that it starts from, and training images with what is known of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vaezoo.metrics.protocols import NamesLabels
from vaezoo.metrics.reading import as_indices
from vaezoo.pictures.labels import label_spans
from vaezoo.types import AnyBatch, Batch

POOL = 2000
"""Images that starts are chosen from, and training images to compare with, at most."""


class Known(NamedTuple):
    """Images, and the indices of their factors, (N, K); -1 where one is not known, K of 0 where none is."""

    batch: Batch
    factors: Tensor


@dataclass(frozen=True)
class Images:
    """All images of a page.

    Attributes:
        starts: Images to start from.
        split: Split that they are of, or "given".
        training: Images to find the nearest among.
        factor_names: Names of the factors, in the order of their indices.
        label_names: Names of the labels, one a column, or one a label where these are one-hot; may be empty.
        label_sizes: Classes of each label where labels are one-hot.
        label_spans: Least and greatest value of each label, (2, K).
    """

    starts: Known
    split: str
    training: Known
    factor_names: tuple[str, ...] = ()
    label_names: tuple[str, ...] = ()
    label_sizes: tuple[int, ...] = ()
    label_spans: Tensor | None = None

    @classmethod
    def of(cls, data: Any, pool: int = POOL, seed: int = 0) -> "Images":
        """Some images of a datamodule that is set up; or images as `Batch.of` takes them, for both purposes.

        Args:
            data: vaezoo's datamodule, a tensor of images, (images, labels), or a `Batch`.
            pool: Images of each kind at most.
            seed: Seed of their choice, as in `vaezoo figure`: image 3 there is image 3 here.
        """
        if not hasattr(data, "evaluation_batches"):
            images = _given(data, pool)
            return cls(images, "given", images)
        split = data.evaluation_split
        return cls(
            _read(data, pool, split, seed),
            split,
            _read(data, pool, "train", seed),
            tuple(data.factor_names),
            tuple(data.labelled_names) if isinstance(data, NamesLabels) else (),
            tuple(data.label_sizes),
            label_spans(data, data.label_size),
        )

    @property
    def kind(self) -> str:
        """What the images to start from are called: "training" images."""
        return {"train": "training", "val": "validation"}.get(self.split, self.split)

    def column_names(self, size: int) -> list[str]:
        """A name for each column of the labels: "shape", or "shape 2" of a one-hot label; y0, y1, … where unknown."""
        names = list(self.label_names)
        if len(self.label_sizes) == len(names):
            names = [f"{name} {k}" for name, count in zip(names, self.label_sizes, strict=True) for k in range(count)]
        return names if len(names) == size else [f"y{k}" for k in range(size)]

    def factors_text(self, known: Known, index: int) -> dict[str, str]:
        """Factors of one image by name; those that are not known are left out."""
        values = known.factors[index].tolist()
        return {name: str(value) for name, value in zip(self.factor_names, values, strict=True) if value >= 0}


def _read(data: Any, pool: int, split: str, seed: int) -> Known:
    pairs = list(data.evaluation_batches(pool, split, seed, torch.device("cpu")))
    batch = Batch(*(torch.cat(fields) for fields in zip(*(batch for batch, _ in pairs), strict=True)))
    return Known(batch, torch.cat([as_indices(factors) for _, factors in pairs]))


def _given(data: AnyBatch, pool: int) -> Known:
    try:
        batch = Batch.of(data).floats()
    except (TypeError, ValueError) as error:
        raise type(error)(f"data must be a datamodule that is set up, or images: {error}") from error
    if not len(batch.x):
        raise ValueError("data holds no images: leave data out, or give some")
    return Known(Batch(*(field[:pool] for field in batch)), torch.empty(len(batch.x[:pool]), 0, dtype=torch.long))


def in_batches(batch: Batch, size: int = 256) -> Sequence[Batch]:
    """The same images, some at a time."""
    return [Batch(*fields) for fields in zip(*(field.split(size) for field in batch), strict=True)]
