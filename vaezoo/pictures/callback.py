"""Draw pictures during training: PNG files in the run's folder, and images for its loggers."""

import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from torchvision.utils import save_image

from vaezoo.models.base import VAE
from vaezoo.pictures.grids import grid
from vaezoo.pictures.picture import Picture
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.loggers import log_picture
from vaezoo.types import AnyBatch, Batch


class Pictures(Callback):
    """Draws after each validation and at the end of training.

    Uses the first validation images, or the first training images if there is no validation set. Saves to
    `pictures/<name>.png` in the run's folder and to loggers that accept images. A picture that fails gives a warning
    and never stops training.

    Args:
        images: Number of images to draw from.
    """

    def __init__(self, images: int = 8) -> None:
        self.images = images
        self._batch: Batch | None = None
        self._warned = False
        self._drawn = -1  # the step of the last pictures

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> Mapping[str, Picture | Tensor]:
        """Pictures, or pixels (3, H, W) in [0, 1], by name. The model is in eval mode, without gradients."""
        raise NotImplementedError

    def on_validation_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: AnyBatch, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Keep the first validation images."""
        if batch_idx == 0:
            self._keep(batch)

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: AnyBatch, batch_idx: int
    ) -> None:
        """Keep the first training images if there is no validation set."""
        if self._batch is None:
            self._keep(batch)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Draw during training."""
        if trainer.state.fn == "fit" and not trainer.sanity_checking:
            self._draw(trainer, pl_module)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Draw the final model, unless the last validation did."""
        if self._drawn != trainer.global_step:
            self._draw(trainer, pl_module)

    def _keep(self, batch: AnyBatch) -> None:
        self._batch = Batch(*(field[: self.images] for field in Batch.of(batch))).floats()

    @torch.no_grad()
    def _draw(self, trainer: Trainer, model: LightningModule) -> None:
        self._drawn = trainer.global_step
        folder = trainer.log_dir  # a collective call: on every rank
        if not trainer.is_global_zero or self._batch is None or not isinstance(model, VAE):
            return
        was_training, noise = model.training, torch.get_rng_state()
        model.eval()
        try:
            for name, picture in self.draw(trainer, model, self._batch).items():
                _keep_picture(trainer, folder, name, picture)
        except Exception as error:  # a picture is never worth a run
            if not self._warned:
                warnings.warn(f"{type(self).__name__} could not draw: {type(error).__name__}: {error}", stacklevel=2)
            self._warned = True
        finally:
            model.train(was_training)
            torch.set_rng_state(noise)  # drawing leaves the noise of training as it is


class SavePictures(Pictures):
    """Draws reconstructions, prior samples and traversals.

    `reconstructions` shows images above their reconstructions. `traversals_<latent>` starts from an image,
    `traversals_<latent>_prior` from the prior mean; one unit per row, largest KL first (Dupont, 2018, Fig. 3 and 8).

    Args:
        images: Number of images to reconstruct; four times as many samples are drawn.
        steps: Columns of a traversal.
        span: First and last value of a traversed continuous unit.
        max_units: Largest number of units to traverse per latent group.
    """

    def __init__(
        self, images: int = 8, steps: int = 10, span: tuple[float, float] = (-2.0, 2.0), max_units: int = 16
    ) -> None:
        super().__init__(images)
        self.steps, self.span, self.max_units = steps, span, max_units

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> Mapping[str, Picture]:
        """Reconstructions, samples and the traversals of each latent group."""
        title, (x, y, _) = caption(trainer, model), batch
        pictures: dict[str, Picture] = {
            "reconstructions": reconstructions(model, batch, title),
            "samples": samples(model, self.images, title),
        }
        units = model.unit_nats(x, y)
        for name in model.walkable():
            nats = units[name]
            order = nats.argsort(descending=True)[: self.max_units].tolist()
            rows = [f"{name}{unit}  {nats[unit]:.2f} nats" for unit in order]
            for suffix, start in (("", x[:1]), ("_prior", None)):
                walks = [walk[0] for walk in model.traverse(start, name, order, self.steps, self.span, y[:1])]
                columns = column_names(model, name, self.steps, self.span)
                where = "from an image" if start is not None else "from the prior's mean"
                pictures[f"traversals_{name}{suffix}"] = grid(walks, rows, columns, f"{title} · {name} {where}")
        return pictures


def reconstructions(model: VAE, batch: Batch, title: str) -> Picture:
    """Images above their reconstructions."""
    return grid([batch.x, model.reconstruct(batch.x, batch.y)], ["image", "reconstruction"], (), title)


def samples(model: VAE, across: int, title: str) -> Picture:
    """Four rows of prior samples."""
    return grid(model.sample(4 * across).split(across), (), (), f"{title} · samples")


def column_names(model: VAE, latent: str, steps: int, span: tuple[float, float]) -> list[str]:
    """Column names of a traversal: values, or classes of a discrete group."""
    if classes := model.latents[latent].classes:
        return [f"class {k}" for k in range(max(classes))]
    return [f"{round(value, 1) + 0.0:.1f}" for value in torch.linspace(*span, steps).tolist()]  # no "-0.0"


def caption(trainer: Trainer, model: VAE) -> str:
    """Model, dataset and step: the first words of every title."""
    data = getattr(trainer, "datamodule", None)
    dataset = [] if data is None else [type(data).__name__.removesuffix("DataModule")]
    return " · ".join([type(model).__name__, *dataset, f"step {int(model.step)}"])


def _keep_picture(trainer: Trainer, folder: str | None, name: str, drawn: Picture | Tensor) -> None:
    """Save a picture to the run's folder and to loggers that accept images."""
    picture = drawn.pixels() if isinstance(drawn, Picture) else drawn
    if folder is not None:
        path = RunFolder(Path(folder)).pictures / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_image(picture, path)
    for logger in trainer.loggers:
        log_picture(logger, f"pictures/{name}", picture, trainer.global_step)
