"""Pictures of what a model has learnt, as PNG files in the run's folder."""

from pathlib import Path

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from torchvision.utils import make_grid, save_image

from vaezoo.base import VAE
from vaezoo.types import Batch


class SavePictures(Callback):
    """Saves reconstructions, traversals and samples after each validation and at the end of training.

    Files go to `pictures/` in the run's folder: `reconstructions.png` (images above, reconstructions below),
    `traversals_<latent>.png` (one row a unit, those with the largest KL first) and `samples.png`.

    Args:
        images: Number of images to reconstruct, and a fourth of the number of samples.
        steps: Columns of a traversal.
        span: First and last value of a traversed continuous unit.
    """

    def __init__(self, images: int = 8, steps: int = 10, span: tuple[float, float] = (-2.0, 2.0)) -> None:
        self.images, self.steps, self.span = images, steps, span
        self._x: Tensor | None = None

    def on_validation_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Batch, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """Keep the first validation images."""
        if batch_idx == 0:
            self._x = batch.x[: self.images]

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Batch, batch_idx: int) -> None:
        """Keep the first training images where nothing is held out."""
        if self._x is None:
            self._x = batch.x[: self.images]

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save pictures during training."""
        if trainer.state.fn == "fit" and not trainer.sanity_checking:
            self._save(trainer, pl_module)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save pictures of the final model."""
        self._save(trainer, pl_module)

    @torch.no_grad()
    def _save(self, trainer: Trainer, model: LightningModule) -> None:
        folder, x = trainer.log_dir, self._x  # log_dir is a collective call: on every rank
        if not trainer.is_global_zero or folder is None or x is None or not isinstance(model, VAE):
            return
        pictures = Path(folder) / "pictures"
        pictures.mkdir(parents=True, exist_ok=True)
        was_training = model.training
        model.eval()
        pairs = torch.cat([x, model.reconstruct(x)])
        save_image(make_grid(pairs, nrow=len(x), pad_value=1), pictures / "reconstructions.png")
        save_image(make_grid(model.sample(4 * self.images), nrow=self.images, pad_value=1), pictures / "samples.png")
        for name, nats in model.unit_nats(x).items():
            ranked = nats.argsort(descending=True).tolist()
            rows = model.traverse(x[:1], name, ranked, self.steps, self.span)
            save_image(_rows(rows), pictures / f"traversals_{name}.png")
        model.train(was_training)


def _rows(rows: list[Tensor]) -> Tensor:
    """One strip a unit below the other; shorter strips are filled up with white."""
    width = max(row.shape[1] for row in rows)
    blank = torch.ones_like(rows[0][0, :1])
    strips = [torch.cat([row[0], blank.expand(width - row.shape[1], -1, -1, -1)]) for row in rows]
    grid: Tensor = make_grid(torch.cat(strips), nrow=width, pad_value=1)
    return grid
