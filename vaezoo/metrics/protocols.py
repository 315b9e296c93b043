"""What scores ask of models and of data."""

from collections.abc import Iterator, Mapping
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from vaezoo.types import Batch, Posterior

Split = Literal["train", "val", "test", "all"]


class NamesFactors(Protocol):
    """Data whose factors have names and kinds."""

    @property
    def factor_names(self) -> tuple[str, ...]:
        """Names of the factors, in the order of their columns."""

    @property
    def factor_kinds(self) -> tuple[str, ...]:
        """Kind of each factor: "categorical" or another."""


@runtime_checkable
class EvaluationData(NamesFactors, Protocol):
    """What an evaluation asks of a datamodule."""

    @property
    def source(self) -> str:
        """Where the pictures come from, "file" or "render"."""

    @property
    def evaluation_split(self) -> Split:
        """Images to judge a trained model by."""

    def evaluation_batches(
        self, images: int, split: Split, seed: int, device: torch.device
    ) -> Iterator[tuple[Batch, Tensor]]:
        """Labelled images of a split on the device, chosen by the seed, with their factors (B, K).

        Factors are indices; -1 where one is not known. One that was binned has its place counted in bins: 3.7 lies in
        bin 3, so that scores that need no bins read all of it.
        """


@runtime_checkable
class InfersLabels(Protocol):
    """A model with latents that stand for labels."""

    def labels_of(self, posterior: Mapping[str, Posterior]) -> Tensor:
        """Labels of images whose posteriors are known, (B, K)."""


@runtime_checkable
class DecodesLabels(Protocol):
    """A model that decodes one-hot labels from its codes."""

    label_sizes: tuple[int, ...]

    def classify(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Class of each label, (B, labels)."""


@runtime_checkable
class NamesLabels(Protocol):
    """Data whose labels have names."""

    @property
    def labelled_names(self) -> tuple[str, ...]:
        """Names of the labels, in their order."""
