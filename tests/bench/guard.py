"""What the guard against NaN costs a step of `fit`."""

import logging
import statistics
import time
from typing import Any

import torch
from lightning.pytorch import Callback, Trainer

from tests.helpers.zoo import in_order
from vaezoo.callbacks import GuardFinite
from vaezoo.models import BetaVAE, WeLaVAE
from vaezoo.models.base import VAE
from vaezoo.types import Batch

STEPS = 40


class _Timed(GuardFinite):
    """Adds up the processor time within the guard's own hooks: a difference of whole steps drowns in noise."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.spent: list[float] = []

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("on_train_batch_start", "on_before_backward", "on_before_optimizer_step", "on_train_batch_end"):
            return found

        def timed(*args: Any) -> None:
            start = time.process_time()
            found(*args)
            self.spent.append(time.process_time() - start)

        return timed


class _Steps(Callback):
    def __init__(self) -> None:
        self.starts: list[float] = []

    def on_train_batch_start(self, *_: Any) -> None:
        self.starts.append(time.process_time())


def share(model: VAE, batch: Batch, guard: _Timed) -> dict[str, object]:
    """Median processor time a step, that of it within the guard, and their ratio."""
    steps = _Steps()
    trainer = Trainer(
        max_steps=STEPS,
        accelerator="cpu",
        callbacks=[steps, guard],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, in_order([batch] * STEPS))
    step = statistics.median(b - a for a, b in zip(steps.starts, steps.starts[1:], strict=False))
    hooks = len(guard.spent) // STEPS
    own = statistics.median(sum(guard.spent[i : i + hooks]) for i in range(0, len(guard.spent), hooks))
    return {"step ms": round(1e3 * step, 2), "guard ms": round(1e3 * own, 3), "share": f"{100 * own / step:.2f} %"}


def run() -> list[dict[str, object]]:
    """Measure and return one row a model and an action."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    labels = torch.eye(3).repeat(1, 2)[torch.arange(256) % 3]
    candidates = {
        "BetaVAE": (lambda: BetaVAE((3, 64, 64)), Batch(torch.rand(64, 3, 64, 64), labels[:64], labels[:64, 0] < 0)),
        "WeLaVAE": (lambda: WeLaVAE((1, 64, 64), [3, 3]), Batch(torch.rand(256, 1, 64, 64), labels, labels[:, 0] < 0)),
    }
    return [
        {"what": name, "action": action, **share(make(), batch, _Timed(action))}
        for name, (make, batch) in candidates.items()
        for action in ("stop", "skip")
    ]
