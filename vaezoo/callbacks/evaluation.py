"""Disentanglement scores during training."""

import warnings
from collections.abc import Iterator, Sequence

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor
from torchmetrics import Metric

from vaezoo.metrics import MIG, SAP
from vaezoo.metrics.base import FittedMetric, ScoreMetric
from vaezoo.metrics.encoded import Encoded, known_facts
from vaezoo.metrics.protocols import EvaluationData, Split
from vaezoo.metrics.reading import bind_known
from vaezoo.metrics.scoring import warn_of_few
from vaezoo.models.base import VAE
from vaezoo.types import AnyBatch, Batch

DEFAULT_SCORES = (MIG, SAP)
FACTORS = {"factors", "factor_values", "classes", "positions"}


class EvaluateDisentanglement(Callback):
    """Computes disentanglement scores and logs them as `val/<score>`. Each image is encoded once for all scores.

    Runs with validations during fit or at the end of training, and in `validate`. Images and factors come from the
    datamodule. Without one, the labelled images of the validation loader are used, with labels as factors.

    Args:
        metrics: Scores to compute. Defaults to MIG and SAP.
        images: Number of images to encode, divided among ranks.
        every_n_epochs: Score the validations of every n-th epoch. None scores once, when training ends.
        split: Split to draw the images from.
        seed: Seed of the draw.
        latents: Latent groups to read codes from. Defaults to all.
    """

    def __init__(
        self,
        metrics: Sequence[Metric] | None = None,
        images: int = 10_000,
        every_n_epochs: int | None = 1,
        split: Split = "val",
        seed: int = 0,
        latents: list[str] | None = None,
    ) -> None:
        if every_n_epochs is not None and every_n_epochs < 1:
            raise ValueError(f"every_n_epochs must be at least 1, or None for the end alone, not {every_n_epochs}")
        self.metrics: list[Metric] = [score() for score in DEFAULT_SCORES] if metrics is None else list(metrics)
        self.images, self.every_n_epochs, self.split, self.seed = images, every_n_epochs, split, seed
        self.latents = latents

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Score, and log as validation does."""
        if trainer.sanity_checking or (trainer.state.fn == "fit" and not self._due(trainer)):
            return
        if scores := self._scores(trainer, pl_module):
            pl_module.log_dict(scores, sync_dist=True)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Score once; validation is over, so loggers are called directly."""
        if self.every_n_epochs is None and (scores := self._scores(trainer, pl_module)):
            for logger in trainer.loggers:
                logger.log_metrics(scores, trainer.global_step)
            trainer.callback_metrics.update({name: torch.tensor(score) for name, score in scores.items()})

    def _due(self, trainer: Trainer) -> bool:
        return self.every_n_epochs is not None and (trainer.current_epoch + 1) % self.every_n_epochs == 0

    def _scores(self, trainer: Trainer, model: LightningModule) -> dict[str, float]:
        if not isinstance(model, VAE):
            raise TypeError(f"EvaluateDisentanglement needs a vaezoo VAE, not a {type(model).__name__}")
        data = getattr(trainer, "datamodule", None)
        data = data if isinstance(data, EvaluationData) else None
        metrics = _fitting(self.metrics, data)
        for metric in metrics:
            metric.reset()
            bind_known(metric, **known_facts(model, data, self.latents))
        was_training = model.training
        model.eval()
        with torch.no_grad():
            for batch, factors in self._batches(trainer, data, model.device):
                encoded = Encoded(model, batch, factors, data, self.latents)
                for metric in metrics:
                    encoded.update(metric)
            fitted = [metric for metric in metrics if isinstance(metric, FittedMetric)]
            if fitted and data is not None:
                for batch, factors in data.evaluation_batches(self.images, "train", self.seed, model.device):
                    encoded = Encoded(model, batch, factors, data, self.latents)
                    for metric in fitted:
                        encoded.update(metric, training=True)
        model.train(was_training)
        return self._computed(trainer.world_size)

    def _computed(self, ranks: int) -> dict[str, float]:
        scores: dict[str, float] = {}
        pools = [metric for metric in self.metrics if isinstance(metric, ScoreMetric) and metric.update_called]
        pools = [metric for metric in pools if not isinstance(metric, FittedMetric)]
        warn_of_few({type(metric).__name__: (ranks * len(metric.tables()[0]), metric.wants) for metric in pools})
        for metric in self.metrics:
            try:
                found = metric.compute() if metric.update_called else {}
            except ValueError as error:  # too few images, say: no reason to end a run
                warnings.warn(f"{type(metric).__name__} is left out: {error}", stacklevel=2)
                found = {}
            scores |= {f"val/{name}": float(score) for name, score in found.items()}
            metric.reset()  # the codes are not needed until the next time
        return {name: score for name, score in scores.items() if not name.endswith("_seed")}

    def _batches(
        self, trainer: Trainer, data: EvaluationData | None, device: torch.device
    ) -> Iterator[tuple[Batch, Tensor]]:
        if data is not None:
            yield from data.evaluation_batches(self.images, self.split, self.seed, device)
            return
        left = -(-self.images // trainer.world_size)
        for loader in _loaders(trainer):
            for batch in map(Batch.of, loader):
                known = Batch(*(part[batch.labelled][:left] for part in batch)).to(device).floats()
                left -= len(known.x)
                if len(known.x):
                    yield known, known.y
                if not left:
                    return


def _fitting(metrics: list[Metric], data: EvaluationData | None) -> list[Metric]:
    """All scores, or those that read no factors where the data has none: MIG and SAP are in many configurations."""
    if data is None or data.factor_names:
        return metrics
    reads = [
        set(metric.reads if isinstance(metric, ScoreMetric) else ScoreMetric.reads) & FACTORS for metric in metrics
    ]
    if unfit := [type(metric).__name__ for metric, factors in zip(metrics, reads, strict=True) if factors]:
        warnings.warn(f"{', '.join(unfit)} left out: {type(data).__name__} has no factors", stacklevel=2)
    return [metric for metric, factors in zip(metrics, reads, strict=True) if not factors]


def _loaders(trainer: Trainer) -> Iterator[Iterator[AnyBatch]]:
    loaders = trainer.val_dataloaders
    yield from loaders if isinstance(loaders, list) else [] if loaders is None else [loaders]
