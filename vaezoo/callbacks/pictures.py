"""Pictures of what a model has learnt, as PNG files in the run's folder and as images of its logger."""

from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from torchvision.utils import make_grid, save_image

from vaezoo.base import VAE
from vaezoo.models import LaRVAE
from vaezoo.types import Batch


@runtime_checkable
class _ImageLogger(Protocol):
    """A logger that takes images, as `WandbLogger` does."""

    def log_image(self, key: str, images: list[Tensor], step: int | None = None) -> None: ...


@runtime_checkable
class _DrawsLabels(Protocol):
    """A datamodule that can show the image of any labels."""

    def images_of(self, labels: Tensor) -> Tensor | None: ...


class Pictures(Callback):
    """Draws after each validation and at the end of training.

    Pictures are drawn from the first validation images, or the first training images where nothing is held out, and go
    to `pictures/<name>.png` in the run's folder, and to loggers that take images.

    Args:
        images: Number of images to draw from.
    """

    def __init__(self, images: int = 8) -> None:
        self.images = images
        self._batch: Batch | None = None

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> dict[str, Tensor]:
        """Pictures (C, H, W) in [0, 1] by name; the model is in evaluation and gradients are off."""
        raise NotImplementedError

    def on_validation_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Batch, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Keep the first validation images."""
        if batch_idx == 0:
            self._keep(batch)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Batch, batch_idx: int) -> None:
        """Keep the first training images where nothing is held out."""
        if self._batch is None:
            self._keep(batch)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Draw during training."""
        if trainer.state.fn == "fit" and not trainer.sanity_checking:
            self._draw(trainer, pl_module)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Draw the final model."""
        self._draw(trainer, pl_module)

    def _keep(self, batch: Batch) -> None:
        self._batch = Batch(*(field[: self.images] for field in batch))

    @torch.no_grad()
    def _draw(self, trainer: Trainer, model: LightningModule) -> None:
        folder, batch = trainer.log_dir, self._batch  # log_dir is a collective call: on every rank
        if not trainer.is_global_zero or batch is None or not isinstance(model, VAE):
            return
        was_training = model.training
        model.eval()
        pictures = self.draw(trainer, model, batch)
        model.train(was_training)
        for name, picture in pictures.items():
            if folder is not None:
                path = Path(folder) / "pictures" / f"{name}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                save_image(picture, path)
            for logger in trainer.loggers:
                if isinstance(logger, _ImageLogger):
                    logger.log_image(f"pictures/{name}", [picture.cpu()], step=trainer.global_step)


class SavePictures(Pictures):
    """Draws reconstructions, traversals and samples.

    `reconstructions` has images above and their reconstructions below; `traversals_<latent>` has one row a unit, those
    with the largest KL first; `samples` come from the prior.

    Args:
        images: Number of images to reconstruct, and a fourth of the number of samples.
        steps: Columns of a traversal.
        span: First and last value of a traversed continuous unit.
    """

    def __init__(self, images: int = 8, steps: int = 10, span: tuple[float, float] = (-2.0, 2.0)) -> None:
        super().__init__(images)
        self.steps, self.span = steps, span

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> dict[str, Tensor]:
        """Reconstructions, samples and one picture of traversals a latent group."""
        x, y, _ = batch
        pairs = torch.cat([x, model.reconstruct(x, y)])
        pictures = {
            "reconstructions": make_grid(pairs, nrow=len(x), pad_value=1),
            "samples": make_grid(model.sample(4 * self.images), nrow=self.images, pad_value=1),
        }
        for name, nats in model.unit_nats(x, y).items():
            ranked = nats.argsort(descending=True).tolist()
            rows = model.traverse(x[:1], name, ranked, self.steps, self.span, y[:1])
            pictures[f"traversals_{name}"] = _rows(rows)
        return pictures


class SaveLabelTraversals(Pictures):
    """Draws images generated from labels, one label after the other going from 0 to 1 (Nie et al., 2020, Fig. 4).

    Each label has a row that starts with the reference image. Where the data can draw any labels, the true images stand
    above in a row of their own.

    Args:
        steps: Values of each label.
    """

    def __init__(self, steps: int = 8) -> None:
        super().__init__(images=1)
        self.steps = steps

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> dict[str, Tensor]:
        """One picture, `label_traversals`; none for a model without labels or before a labelled image was seen."""
        if not isinstance(model, LaRVAE) or not batch.labelled.all() or bool(batch.y.isnan().any()):
            return {}
        labels = model.labels_walk(batch.y, self.steps).flatten(0, 2)  # (K · S, K)
        rows = list(model.generate(labels).split(self.steps))
        data = getattr(trainer, "datamodule", None)
        truth = data.images_of(labels.cpu()) if isinstance(data, _DrawsLabels) else None
        if truth is not None:
            rows = [row for pair in zip(truth.to(batch.x).split(self.steps), rows, strict=True) for row in pair]
        return {"label_traversals": _rows([torch.cat([batch.x[:1], row])[None] for row in rows])}


def _rows(rows: list[Tensor]) -> Tensor:
    """One strip a unit below the other; shorter strips are filled up with white."""
    width = max(row.shape[1] for row in rows)
    blank = torch.ones_like(rows[0][0, :1])
    strips = [torch.cat([row[0], blank.expand(width - row.shape[1], -1, -1, -1)]) for row in rows]
    grid: Tensor = make_grid(torch.cat(strips), nrow=width, pad_value=1)
    return grid
