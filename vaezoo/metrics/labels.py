"""Scores that compare inferred labels, positions and reconstructions with the truth."""

from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, mse_loss

from vaezoo.metrics import functional
from vaezoo.metrics.base import FittedMetric, PoolMetric, ScoreMetric, as_array


class LabelDistance(PoolMetric):
    """Mean Euclidean distance of inferred labels (B, K) from true ones (B, K), ℓ2 of LaRVAE, and errors of each."""

    higher_is_better = False
    wants = 100
    reads = ("inferred_labels", "labels")

    def __init__(self) -> None:
        super().__init__(functional.label_distance)


class PolarError(PoolMetric):
    """Squared error of blob positions (B, 2) read from the codes in polar coordinates, as WeLa-VAE measures it."""

    higher_is_better = False
    reads = ("codes", "positions")

    def __init__(self) -> None:
        super().__init__(functional.polar_error)


class CartesianError(PoolMetric):
    """Squared error of blob positions (B, 2) read from the codes in Cartesian coordinates (WeLa-VAE)."""

    higher_is_better = False
    reads = ("codes", "positions")

    def __init__(self) -> None:
        super().__init__(functional.cartesian_error)


class ClassAccuracy(PoolMetric):
    """Accuracy of the most probable class, from probabilities (B, C) or classes (B,) and labels (B,)."""

    wants = 100
    reads = ("class_probabilities", "classes")

    def __init__(self) -> None:
        super().__init__(functional.class_accuracy)


class ClusterAccuracy(PoolMetric):
    """Accuracy under the best one-to-one map of clusters to labels, from probabilities (B, C) and labels (B,)."""

    wants = 100
    reads = ("class_probabilities", "classes")

    def __init__(self) -> None:
        super().__init__(functional.cluster_accuracy)


class AttributeAccuracy(FittedMetric):
    """Accuracy of binary attributes (B, K) along differences of mean codes (Kumar et al., 2018, Table 2).

    Args:
        attribute_names: Names of the attributes; an evaluation reads them from the data.
    """

    def __init__(self, attribute_names: tuple[str, ...] = ()) -> None:
        super().__init__(partial(functional.attribute_accuracy, attribute_names=attribute_names))

    def update(self, codes: Tensor, factors: Tensor, training: bool = False) -> None:
        """Add a batch of codes (B, D) and attributes (B, K), 0 or 1 each."""
        if not ((factors == 0) | (factors == 1)).all():
            raise ValueError("attributes must be 0 or 1: pass one column for each value of a category")
        super().update(codes, factors, training)


class LabelAccuracy(PoolMetric):
    """Accuracy of labels decoded from the mean code (WeLa-VAE, Table 1), from classes (B, L) and labels (B, L).

    Args:
        label_names: Names of the labels; an evaluation reads them from the data.
    """

    wants = 100
    reads = ("decoded_labels", "label_classes")

    def __init__(self, label_names: tuple[str, ...] = ()) -> None:
        super().__init__(partial(functional.label_accuracy, label_names=label_names))


class LabelOrder(PoolMetric):
    """Share of labels whose classes lie in order along a latent, from codes (B, D) and classes of labels (B, L).

    Args:
        label_names: Names of the labels; an evaluation reads them from the data.
    """

    reads = ("codes", "label_classes")

    def __init__(self, label_names: tuple[str, ...] = ()) -> None:
        super().__init__(partial(functional.label_order, label_names=label_names))


class ReconstructionError(ScoreMetric):
    """Mean reconstruction error per pixel and channel.

    Args:
        variant: "squared" error, or "bernoulli" cross-entropy in nats, for values in [0, 1].
    """

    higher_is_better = False
    wants = 100
    reads = ("reconstructions", "images")
    errors: list[Tensor]

    def __init__(self, variant: Literal["squared", "bernoulli"] = "squared") -> None:
        super().__init__(partial(functional.reconstruction_error, variant=variant))
        self.variant = variant
        self.add_state("errors", default=[], dist_reduce_fx="cat")

    def update(self, reconstruction: Tensor, x: Tensor) -> None:
        """Add a batch of reconstructions (means, not logits) and images, both (B, C, H, W)."""
        if reconstruction.shape != x.shape:
            raise ValueError(f"reconstruction {tuple(reconstruction.shape)} and x {tuple(x.shape)} must have one shape")
        error = mse_loss if self.variant == "squared" else binary_cross_entropy
        self.errors.append(error(reconstruction.detach().float(), x.float(), reduction="none").flatten(1).mean(dim=1))

    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """Return the mean error of every example so far."""
        return (as_array(self.errors)[:, None],)
