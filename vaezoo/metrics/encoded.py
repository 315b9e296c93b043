"""One encoded batch for scores: codes and factors, the rest on demand."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from vaezoo.functional import observed_labels
from vaezoo.metrics.protocols import DecodesLabels, EvaluationData, InfersLabels, NamesLabels
from vaezoo.metrics.reading import Reading, categorical
from vaezoo.models.base import VAE
from vaezoo.types import Batch, Posterior

Value = TypeVar("Value")


class Once(Generic[Value]):
    """A property that is computed when it is first read.

    Before Python 3.12, `functools.cached_property` lets no two threads compute it at a time, not even for two objects.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __get__(self, instance: object, owner: type) -> Value:
        # Python looks into the object before it asks here again.
        value = instance.__dict__[self.compute.__name__] = self.compute(instance)
        return value


class Encoded(Reading):
    """Outputs of a model for a batch. Each attribute is computed once, when a score first reads it.

    Args:
        model: The model, in evaluation mode.
        batch: Images and labels.
        factors: Factors of the images, (B, K), as `EvaluationData` gives them.
        data: The datamodule; None for loaders without one.
        latents: Latent groups to read codes and nats from. Defaults to all. A score may choose other groups.
    """

    def __init__(
        self,
        model: VAE,
        batch: Batch,
        factors: Tensor,
        data: EvaluationData | None = None,
        latents: Sequence[str] | None = None,
    ) -> None:
        super().__init__(factors, data)
        self.model, self.latents = model, latents
        self.batch = batch._replace(x=batch.x.to(model.dtype))  # a step's inputs are cast by the Trainer
        self.images, self.labels = batch.x, batch.y

    @Once
    def posterior(self) -> dict[str, Posterior]:
        """Posteriors by latent group; images are encoded once for all scores."""
        with torch.no_grad():
            return self.model.encode(self.batch.x, self.batch.y)

    @Once
    def all_codes(self) -> Tensor:
        """Codes of the images, all groups in the model's order, (B, units)."""
        if any(getattr(type(self.model), name) is not getattr(VAE, name) for name in ("represent", "codes")):
            return self.model.codes(self.batch)  # a model that defines its own codes
        return self.model.codes_of(self.posterior)

    @property
    def codes(self) -> Tensor:
        """Codes of the groups: continuous latents first, class probabilities last, (B, D)."""
        return self.all_codes[:, code_columns(self.model, self.latents)].float()

    @property
    def nats(self) -> Tensor:
        """KL of each latent unit of the groups, (B, units)."""
        chosen = self.latents or self.posterior
        return torch.cat([q.kl() for name, q in self.posterior.items() if name in chosen], dim=1)

    @Once
    def reconstructions(self) -> Tensor:
        """Images decoded from the posterior modes, in [0, 1], (B, C, H, W)."""
        with torch.no_grad():
            return self.model.decode({name: q.mode() for name, q in self.posterior.items()}).sigmoid()

    @property
    def class_probabilities(self) -> Tensor:
        """Probabilities of the first discrete latent, decoded or not, (B, classes)."""
        for name, group in self.model.latents.items():
            if group.classes:
                return self.posterior[name].code()[:, : group.classes[0]]
        raise ValueError(f"{type(self.model).__name__} has no discrete latent to read a class from")

    @property
    def inferred_labels(self) -> Tensor:
        """Labels inferred by the model, in the form of the data's labels, (B, K)."""
        if not isinstance(self.model, InfersLabels):
            raise ValueError(f"{type(self.model).__name__} infers no labels")
        return self.model.labels_of(self.posterior)

    @property
    def decoded_labels(self) -> Tensor:
        """Classes of labels decoded from the mean codes, (B, labels)."""
        return self._decoder_of_labels().classify(self.batch.x, self.batch.y)

    @property
    def label_classes(self) -> Tensor:
        """Classes of the one-hot labels, NaN if unobserved, (B, labels)."""
        sizes = self._decoder_of_labels().label_sizes
        known, observed = observed_labels(self.labels, sizes)
        classes = torch.stack([label.argmax(1) for label in known.split(list(sizes), dim=1)], dim=1)
        return torch.where(observed, classes.float(), torch.nan)

    def known(self, reads: Sequence[str]) -> Tensor:
        """Mask of images with all values that a score reads, (B,) bool."""
        known = super().known(reads)
        return known & ~self.labels.isnan().any(1) if "labels" in reads else known

    def _decoder_of_labels(self) -> DecodesLabels:
        if not isinstance(self.model, DecodesLabels):
            raise ValueError(f"{type(self.model).__name__} decodes no labels")
        return self.model


def code_columns(model: VAE, latents: Sequence[str] | None = None) -> list[int]:
    """Columns of a model's codes that belong to the groups, discrete groups last."""
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


def known_facts(model: VAE, data: EvaluationData | None, latents: Sequence[str] | None) -> dict[str, tuple[Any, ...]]:
    """Score arguments that follow from model and data, by name."""
    return {
        "discrete": discrete_sizes(model, latents),
        "categorical": categorical(data),
        "attribute_names": tuple(data.factor_names) if data is not None else (),
        "label_names": tuple(data.labelled_names) if isinstance(data, NamesLabels) else (),
    }
