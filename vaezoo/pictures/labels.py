"""Images generated from labels, sweeping one label at a time."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from lightning.pytorch import Trainer
from torch import Tensor

from vaezoo.models import LaRVAE
from vaezoo.models.base import VAE
from vaezoo.pictures.callback import Pictures, caption
from vaezoo.pictures.grids import grid
from vaezoo.pictures.picture import Picture
from vaezoo.types import Batch


@runtime_checkable
class _Labelled(Protocol):
    """A datamodule that knows the labels of all its images."""

    labelled_factors: Sequence[Any]

    @property
    def pictures(self) -> Any: ...

    def labels_of(self, ids: Tensor) -> Tensor: ...


@runtime_checkable
class _DrawsLabels(Protocol):
    """A datamodule that can show the image of any labels."""

    def images_of(self, labels: Tensor) -> Tensor | None: ...


class SaveLabelTraversals(Pictures):
    """Draws images generated from labels, sweeping one label at a time (Nie et al., 2020, Fig. 4).

    Each label has a row that starts with the reference image. If the data can render any labels, a row of true images
    is drawn above it.

    Args:
        steps: Values of each label.
    """

    def __init__(self, steps: int = 8) -> None:
        super().__init__(images=1)
        self.steps = steps

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> Mapping[str, Picture]:
        """One picture, `label_traversals`; none for a model without labels or before a labelled image was seen."""
        if not isinstance(model, LaRVAE) or not batch.labelled.all() or bool(batch.y.isnan().any()):
            return {}
        data = getattr(trainer, "datamodule", None)
        title = f"{caption(trainer, model)} · labels from least to greatest"
        return {"label_traversals": label_traversals({"generated": model}, batch, data, self.steps, title)}


def label_traversals(
    models: Mapping[str, LaRVAE], batch: Batch, data: object, steps: int, title: str, labels: Sequence[int] = ()
) -> Picture:
    """Rows of images from one image's labels: for each label the truth, if the data can draw it, and every model.

    The nuisance is that of the image: it may hold what the labels miss, and the prior mean looks like no image then.

    Args:
        models: Models by name, of the same labels.
        batch: The reference image with its labels, (1, …).
        data: Datamodule with the names and values of the labels, if any.
        steps: Values of each label.
        title: Title.
        labels: Labels to walk; all where empty.
    """
    size = batch.y.shape[1]
    names, (low, high) = label_names(data, size), label_spans(data, size)
    rows, titles = [], []
    for k in labels or range(size):
        walked = batch.y.repeat(steps, 1)
        walked[:, k] = torch.linspace(float(low[k]), float(high[k]), steps)
        truth = data.images_of(walked.cpu()) if isinstance(data, _DrawsLabels) else None
        made = {} if truth is None else {"true": truth}
        for name, images in (made | {name: _walk(model, batch.x, walked) for name, model in models.items()}).items():
            rows.append(torch.cat([batch.x[:1].cpu(), images.cpu()]))
            titles.append(f"{names[k]}: {name}")
    same = bool((low == low[0]).all() and (high == high[0]).all())
    values = torch.linspace(float(low[0]), float(high[0]), steps).tolist() if same else []
    return grid(rows, titles, ["image", *(f"{value:.2f}" for value in values)], title)


def _walk(model: LaRVAE, x: Tensor, labels: Tensor) -> Tensor:
    nuisance = model.represent(x[:1])[:, model.label_dim :]  # (1, nuisance_dim)
    return model.generate(labels, nuisance.expand(len(labels), -1))


def label_names(data: object, size: int) -> list[str]:
    """Names of the labelled factors or attributes; numbers where the data does not tell."""
    names = [str(factor.name) for factor in data.labelled_factors] if isinstance(data, _Labelled) else []
    return names if len(names) == size else [f"y{k}" for k in range(size)]


def label_spans(data: object, size: int) -> Tensor:
    """Least and greatest value of each label in the data's own form, (2, K); 0 and 1 where it does not tell."""
    if not isinstance(data, _Labelled):
        return torch.tensor([[0.0], [1.0]]).repeat(1, size)
    labels = data.labels_of(torch.arange(len(data.pictures)))
    unknown = labels.isnan()
    return torch.stack(
        [labels.masked_fill(unknown, torch.inf).amin(0), labels.masked_fill(unknown, -torch.inf).amax(0)]
    )
