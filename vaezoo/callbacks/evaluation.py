"""Disentanglement scores while training goes on."""

from collections.abc import Sequence
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torchmetrics import Metric, MetricCollection

from vaezoo.base import VAE
from vaezoo.metrics import MIG, SAP
from vaezoo.types import Batch


class EvaluateDisentanglement(Callback):
    """Scores the codes of the validation images against their labels after each validation of a fit, and in `validate`.

    Every image is encoded once for all scores, which are logged as `val/<score>`.

    Args:
        metrics: Scores to compute; MIG and SAP where None.
        max_images: Images to encode at most, on each rank.
    """

    def __init__(self, metrics: Sequence[Metric] | None = None, max_images: int = 10_000) -> None:
        self.metrics = MetricCollection([MIG(), SAP()] if metrics is None else list(metrics), compute_groups=False)
        self.max_images = max_images
        self._seen = 0

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Forget the codes of the last validation."""
        self.metrics.reset()
        self._seen = 0

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Batch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Encode a batch."""
        if isinstance(pl_module, VAE) and self._seen < self.max_images and not trainer.sanity_checking:
            self.metrics.update(pl_module.represent(batch.x, batch.y), batch.y)
            self._seen += len(batch.x)

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Compute and log the scores."""
        if self._seen:
            pl_module.log_dict({f"val/{name}": float(score) for name, score in self.metrics.compute().items()})
