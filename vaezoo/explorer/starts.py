"""What passes between a page and its explorer: values of controls, starts, and training images nearby."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

Values = tuple[float, ...]
"""Value of each control, in their order: a number, or the class of a picker."""


@dataclass(frozen=True)
class Start:
    """Where a page starts from.

    Attributes:
        name: What it is.
        values: Values of all controls.
        image: The image that was encoded, (1, C, H, W); None for the prior.
        labels: Its labels as the encoder reads them, (1, K).
        factors: What is known of it.
        number: Its number in the data.
    """

    name: str
    values: Values
    image: Tensor | None = None
    labels: Tensor | None = None
    factors: Mapping[str, str] | None = None
    number: int | None = None


class Neighbour(NamedTuple):
    """A training image near a code: image (C, H, W), distance of its code, factors by name."""

    image: Tensor
    distance: float
    factors: dict[str, str]
