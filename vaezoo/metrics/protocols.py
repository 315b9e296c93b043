"""Interfaces that scores expect of models and data."""

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
    """Interface that an evaluation expects of a datamodule."""

    @property
    def source(self) -> str:
        """Where the pictures come from, "file" or "render"."""

    @property
    def evaluation_split(self) -> Split:
        """Split used to score a trained model."""

    def evaluation_batches(
        self, images: int, split: Split, seed: int, device: torch.device
    ) -> Iterator[tuple[Batch, Tensor]]:
        """Labelled images of a split on the device, chosen by the seed, with their factors (B, K).

        Factors are indices; -1 if unknown. Binned factors are measured in bins: 3.7 lies in bin 3, so scores that need
        no bins lose nothing.
        """


@runtime_checkable
class InfersLabels(Protocol):
    """A model with label latents."""

    def labels_of(self, posterior: Mapping[str, Posterior]) -> Tensor:
        """Labels inferred from posteriors, (B, K)."""


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
