"""What each callback that draws or scores costs, as a share of the training between two validations."""

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from lightning.pytorch import Callback

from datamodules import BlobsDataModule, DSpritesDataModule, Shapes3DDataModule
from datamodules.base import ImageDataModule
from tests.bench.steps import a_step
from vaezoo import callbacks as c
from vaezoo.models import BetaVAE, JointVAE, LaRVAE, PartedVAE, WeLaVAE
from vaezoo.models.base import VAE
from vaezoo.pictures import Picture
from vaezoo.types import Batch

INTERVAL = 2000  # steps from one validation to the next in experiments/


class Case(NamedTuple):
    """A model on its data, and the callbacks of its experiments."""

    model: VAE
    data: ImageDataModule
    callbacks: list[Callback]


def cases() -> dict[str, Case]:
    """One model for every kind of callback, at the sizes of its experiment."""
    shapes, sprites = Shapes3DDataModule(source="render"), DSpritesDataModule(source="render")
    labelled = Shapes3DDataModule(source="render", labels=0.01)
    blobs = BlobsDataModule(batch_size=256)
    return {
        "BetaVAE, 3DShapes": Case(
            BetaVAE((3, 64, 64)), shapes, [c.SavePictures(), c.SaveCodeMatrices(), c.EvaluateDisentanglement()]
        ),
        "LaRVAE, 3DShapes": Case(
            LaRVAE((3, 64, 64), label_dim=6), labelled, [c.SavePictures(), c.SaveLabelTraversals()]
        ),
        "JointVAE, dSprites": Case(
            JointVAE((1, 64, 64), 6, [3]), sprites, [c.SavePictures(), c.SaveClassSamples(), c.SaveUnitNats()]
        ),
        "PartedVAE, dSprites": Case(
            PartedVAE((1, 64, 64), 5, 1, [3]), sprites, [c.SavePictures(), c.SavePriors(), c.SaveTransfers()]
        ),
        "WeLaVAE, Blobs": Case(WeLaVAE((1, 64, 64), [2, 2]), blobs, [c.SavePictures(), c.SavePositionMaps()]),
    }


def timed(work: Callable[[], object], rounds: int = 3) -> float:
    """Seconds of the fastest of a few rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def one_call(callback: Callback, trainer: Any, model: VAE, batch: Batch) -> Callable[[], object]:
    """What the callback does at a validation."""
    if isinstance(callback, c.Pictures):
        callback._keep(batch)
        kept = callback._batch
        assert kept is not None
        return lambda: [
            drawn.pixels() if isinstance(drawn, Picture) else drawn
            for drawn in callback.draw(trainer, model.eval(), kept).values()
        ]
    assert isinstance(callback, c.EvaluateDisentanglement)
    return lambda: callback._scores(trainer, model)


def run() -> list[dict[str, object]]:
    """Measure and return one row a model and callback."""
    rows: list[dict[str, object]] = []
    for name, (model, data, callbacks) in cases().items():
        data.prepare_data()
        data.setup()
        train = data.on_after_batch_transfer(next(iter(data.train_dataloader())), 0)
        batch = data.on_after_batch_transfer(next(iter(data.val_dataloader())), 0)  # type: ignore[arg-type]
        step = timed(a_step(model, train))
        trainer = SimpleNamespace(datamodule=data, world_size=1)
        for callback in callbacks:
            with torch.no_grad():
                cost = timed(one_call(callback, trainer, model, batch), 2)
            rows.append(
                {
                    "model": name,
                    "callback": type(callback).__name__,
                    "seconds": round(cost, 2),
                    f"% of {INTERVAL} steps": round(100 * cost / (INTERVAL * step), 2),
                }
            )
    return rows
