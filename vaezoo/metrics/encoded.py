"""One batch as scores read it: codes and factors first, the rest where a score asks for it."""

import inspect
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor
from torchmetrics import Metric

from vaezoo.functional import observed_labels
from vaezoo.metrics.base import FittedMetric, ScoreMetric
from vaezoo.models.base import VAE
from vaezoo.types import Batch, Forward

Split = Literal["train", "val", "test", "all"]


@runtime_checkable
class EvaluationData(Protocol):
    """What an evaluation asks of a datamodule."""

    @property
    def factor_names(self) -> tuple[str, ...]:
        """Names of the factors, in the order of their columns."""

    @property
    def factor_kinds(self) -> tuple[str, ...]:
        """Kind of each factor: "categorical" or another."""

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

    def infer_labels(self, x: Tensor) -> Tensor:
        """Labels of images, (B, K)."""


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


class Encoded:
    """What a model makes of a batch; every attribute is computed once, and only if a score reads it.

    Args:
        model: The model, in evaluation.
        batch: Images and labels.
        factors: Factors of the images, (B, K), as `EvaluationData` gives them.
        data: Where they come from; None for loaders without a datamodule.
        latents: Latent groups whose codes and nats are read; all where None. Scores may read others in turn.
    """

    def __init__(
        self,
        model: VAE,
        batch: Batch,
        factors: Tensor,
        data: EvaluationData | None = None,
        latents: Sequence[str] | None = None,
    ) -> None:
        self.model, self._factors, self.data, self.latents = model, factors, data, latents
        self.batch = batch._replace(x=batch.x.to(model.dtype))  # a step's inputs are cast by the Trainer
        self.images, self.labels = batch.x, batch.y

    @property
    def factor_values(self) -> Tensor:
        """Factors as they are, not binned, (B, K)."""
        if not self._factors.shape[1]:
            raise ValueError("the data has no factors to compare codes with")
        return self._factors

    @property
    def factors(self) -> Tensor:
        """Factors as indices, (B, K); without a datamodule whatever the labels are."""
        return self.factor_values if self.data is None else as_indices(self.factor_values)

    @cached_property
    def all_codes(self) -> Tensor:
        """Codes of the images, all groups in the model's order, (B, units)."""
        return self.model.codes(self.batch)

    @property
    def codes(self) -> Tensor:
        """Codes of the groups, continuous latents first and probabilities of discrete ones last, (B, D)."""
        return self.all_codes[:, code_columns(self.model, self.latents)].float()

    @cached_property
    def forward(self) -> Forward:
        """A pass through the model, each latent at its mode."""
        with torch.no_grad():
            out: Forward = self.model(self.batch)
        return out

    @property
    def nats(self) -> Tensor:
        """KL of each latent unit of the groups, (B, units)."""
        posterior = self.forward.posterior
        return torch.cat([q.kl() for name, q in posterior.items() if name in (self.latents or posterior)], dim=1)

    @property
    def reconstructions(self) -> Tensor:
        """Reconstructed images in [0, 1], (B, C, H, W)."""
        return self.forward.reconstruction.sigmoid()

    @property
    def class_probabilities(self) -> Tensor:
        """Probabilities of the first discrete latent, decoded or not, (B, classes)."""
        for name, group in self.model.latents.items():
            if group.classes:
                return self.forward.posterior[name].code()[:, : group.classes[0]]
        raise ValueError(f"{type(self.model).__name__} has no discrete latent to read a class from")

    @property
    def classes(self) -> Tensor:
        """The first categorical factor, (B,)."""
        columns = categorical(self.data)
        if not columns:
            raise ValueError("the data has no categorical factor to compare classes with")
        return self.factors[:, columns[0]]

    def _known(self, reads: Sequence[str]) -> Tensor:
        """Images of which all is known that a score reads, (B,) bool."""
        known = torch.ones(len(self.images), dtype=torch.bool, device=self.images.device)
        if self.data is not None and {"factors", "factor_values"} & set(reads):
            known &= (self._factors >= 0).all(1)
        if self.data is not None and "classes" in reads:
            known &= self.classes >= 0
        return known & ~self.labels.isnan().any(1) if "labels" in reads else known

    @property
    def positions(self) -> Tensor:
        """Row and column of a blob, (B, 2)."""
        names = self.data.factor_names if self.data is not None else ()
        if not {"row", "column"} <= set(names):
            raise ValueError(f"the data has no factors row and column, only {', '.join(names) or 'labels'}")
        return self.factors[:, [names.index("row"), names.index("column")]]

    @property
    def inferred_labels(self) -> Tensor:
        """Labels that the model infers, in the form of the data's, (B, K)."""
        if not isinstance(self.model, InfersLabels):
            raise ValueError(f"{type(self.model).__name__} infers no labels")
        return self.model.infer_labels(self.batch.x)

    @property
    def decoded_labels(self) -> Tensor:
        """Classes of the labels that the model decodes from its mean codes, (B, labels)."""
        return self._decoder_of_labels().classify(self.batch.x, self.batch.y)

    @property
    def label_classes(self) -> Tensor:
        """Classes of the one-hot labels, NaN for those that are not observed, (B, labels)."""
        sizes = self._decoder_of_labels().label_sizes
        known, observed = observed_labels(self.labels, sizes)
        classes = torch.stack([label.argmax(1) for label in known.split(list(sizes), dim=1)], dim=1)
        return torch.where(observed, classes.float(), torch.nan)

    def _decoder_of_labels(self) -> DecodesLabels:
        if not isinstance(self.model, DecodesLabels):
            raise ValueError(f"{type(self.model).__name__} decodes no labels")
        return self.model

    def update(self, metric: Metric, training: bool = False) -> None:
        """Add the batch to a score, of training images to what it is fitted on; what is not known counts nowhere."""
        reads = metric.reads if isinstance(metric, ScoreMetric) else ScoreMetric.reads
        purpose = {"training": training} if isinstance(metric, FittedMetric) else {}
        tables = [getattr(self, name) for name in reads]
        known = self._known(reads)
        metric.update(*(tables if known.all() else (table[known] for table in tables)), **purpose)


def as_indices(factors: Tensor) -> Tensor:
    """Factors (B, K) as indices: the bins of those that were binned."""
    return factors.floor().long() if factors.is_floating_point() else factors


def code_columns(model: VAE, latents: Sequence[str] | None = None) -> list[int]:
    """Columns of a model's codes that belong to the groups, those of discrete groups last."""
    columns: dict[bool, list[int]] = {False: [], True: []}
    start = 0
    for name, group in model.decoded.items():
        if latents is None or name in latents:
            columns[bool(group.classes)] += range(start, start + group.size)
        start += group.size
    if unknown := sorted(set(latents or ()) - set(model.decoded)):
        raise ValueError(f"no latent group is called {unknown[0]!r}; the model decodes {', '.join(model.decoded)}")
    return columns[False] + columns[True]


def discrete_sizes(model: VAE, latents: Sequence[str] | None = None) -> tuple[int, ...]:
    """Class counts of the discrete latents, in the order of their columns."""
    chosen = [group for name, group in model.decoded.items() if latents is None or name in latents]
    return tuple(k for group in chosen for k in group.classes)


def categorical(data: EvaluationData | None) -> tuple[int, ...]:
    """Columns of the factors that are categories."""
    return tuple(k for k, kind in enumerate(data.factor_kinds if data is not None else ()) if kind == "categorical")


def known_facts(model: VAE, data: EvaluationData | None, latents: Sequence[str] | None) -> dict[str, tuple[Any, ...]]:
    """What model and data determine of a score's arguments, by name."""
    return {
        "discrete": discrete_sizes(model, latents),
        "categorical": categorical(data),
        "attribute_names": tuple(data.factor_names) if data is not None else (),
        "label_names": tuple(data.labelled_names) if isinstance(data, NamesLabels) else (),
    }


def bind_known(metric: Metric, **known: tuple[Any, ...]) -> None:
    """Tell a score what model and data determine, where its constructor left that empty.

    Args:
        metric: A shell of `vaezoo.metrics`, or any other metric, which stays as it is.
        known: Arguments by name, say the class counts of the discrete latents.
    """
    if isinstance(metric, ScoreMetric):
        arguments = inspect.signature(metric.score).parameters
        empty = {name for name, argument in arguments.items() if argument.default == ()}
        metric.score = partial(metric.score, **{name: value for name, value in known.items() if name in empty})
