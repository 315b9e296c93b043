"""Stop a run, or skip its step, on non-finite losses and gradients."""

import math
import re
from collections.abc import Iterable
from typing import Any, Literal

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.utilities import rank_zero_warn
from torch import Tensor

from vaezoo.callbacks.findings import Found, Loss, Update, agree, norms
from vaezoo.models.logged import Logged


class NonFiniteError(RuntimeError):
    """A loss, gradient or weight is NaN or infinite. Raised on all ranks at once."""

    exit_code = 3
    """Of a command that it ends: the same command would end so again."""


class GuardFinite(Callback):
    """Stops a run at the first NaN or infinite loss or gradient, before it reaches weights or checkpoints.

    The error names the loss term (or the parameter, if only its gradient is not finite), the step, the epoch and the
    images. All image ids are appended to `nonfinite.jsonl` in the run's folder. A gradient whose square overflows
    counts as infinite: Adam could not hold it. Only finite weights are saved.

    On the CPU every step is checked before its update. Elsewhere a check syncs with the device, so results stay there
    and are checked now and then and before every checkpoint. The error then names the first bad step; the weights have
    changed since, but no file has. With scaled gradients ("16-mixed"), infinite gradients at a finite loss are left to
    the gradient scaler, which skips them to find its scale, until the scale falls below 1.

    Args:
        action: "stop", or "skip": drop the update and restore optimizer and buffers, but count the batch as a step for
            schedules. Logs `skipped_steps`. "skip" checks every step, on any device.
        patience: Consecutive batches that may be skipped; one more stops the run.
        every_n_steps: Optimizer steps between checks with "stop". Defaults to 1 on the CPU, to the Trainer's log
            interval elsewhere.
        validation: Reaction to a non-finite validation loss while training is fine: "warn" or "stop". Such a validation
            is never selected over a finite one.
    """

    def __init__(
        self,
        action: Literal["stop", "skip"] = "stop",
        patience: int = 10,
        every_n_steps: int | None = None,
        validation: Literal["warn", "stop"] = "warn",
    ) -> None:
        if action not in ("stop", "skip"):
            raise ValueError(f"action must be 'stop' or 'skip', not {action!r}")
        if validation not in ("warn", "stop"):
            raise ValueError(f"validation must be 'warn' or 'stop', not {validation!r}")
        if patience < 1 or (every_n_steps is not None and every_n_steps < 1):
            raise ValueError(f"patience and every_n_steps must be at least 1, not {patience} and {every_n_steps}")
        self.action, self.patience, self.every_n_steps, self.validation = action, patience, every_n_steps, validation
        self.skipped_steps = 0
        self._in_a_row = 0
        self._skipped: bool | None = None  # in this batch; None before any update
        self._losses: list[Loss] = []  # that the next update is made of
        self._updates: list[Update] = []  # not looked at yet
        self._buffers: dict[str, Tensor] = {}

    def state_dict(self) -> dict[str, Any]:
        """How many steps were skipped."""
        return {"skipped_steps": self.skipped_steps} if self.skipped_steps else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on counting."""
        self.skipped_steps = state_dict["skipped_steps"]

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Reset the state of an earlier run."""
        self._losses, self._updates, self._in_a_row = [], [], 0

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Copy the buffers, which the forward pass of a bad batch may corrupt."""
        self._skipped = None
        if self.action == "skip" and not self._losses:
            self._buffers = {name: b.clone() for name, b in pl_module.named_buffers() if b.is_floating_point()}

    def on_before_backward(self, trainer: Trainer, pl_module: LightningModule, loss: Tensor) -> None:
        """Record the loss. A non-finite loss makes every gradient non-finite, so all ranks see it in theirs."""
        value, terms = loss.detach(), {}
        if value.device.type != "cpu" or not math.isfinite(value.item()):  # on the CPU, to look is to wait for nothing
            loss.register_hook(lambda gradient: gradient + 0 * value)
            terms = _terms(pl_module)
        place = getattr(trainer.train_dataloader, "place", None)
        self._losses.append(Loss(trainer.global_step, trainer.current_epoch, place, value, terms))

    def on_before_optimizer_step(
        self, trainer: Trainer, pl_module: LightningModule, optimizer: torch.optim.Optimizer
    ) -> None:
        """Check gradients; under DDP those of all ranks."""
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if not parameters:
            return
        gradients = [p.grad for p in parameters]
        self._updates.append(Update(self._losses, parameters, norms(gradients)))
        self._losses, self._skipped = [], bool(self._skipped)
        if len(self._updates) < self._interval(trainer, pl_module):
            return
        found = self._look(trainer, pl_module)
        if found is not None:
            self._act(trainer, optimizer, found)

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        """Restore buffers after a skipped batch, and count it."""
        if self._skipped:
            self._in_a_row += 1
            for name, buffer in pl_module.named_buffers():
                if name in self._buffers:
                    buffer.copy_(self._buffers[name])
        elif self._skipped is not None:
            self._in_a_row = 0
        if self.skipped_steps:
            pl_module.log("skipped_steps", float(self.skipped_steps))

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Check the validation loss; no step and no checkpoint waits for it."""
        logged = trainer.callback_metrics.items()
        bad = [key for key, term in logged if re.fullmatch(r"val/(?!loss$)[^/]+", key) and not term.isfinite()]
        if trainer.sanity_checking or trainer.callback_metrics.get("val/loss", torch.zeros(())).isfinite():
            return
        message = f"not finite in the validation after step {trainer.global_step}: {', '.join(bad) or 'val/loss'}"
        if self.validation == "stop":
            raise NonFiniteError(f"{message}; checkpoints hold the weights from before")
        rank_zero_warn(f"{message}; it is not the best, and GuardFinite with validation: stop ends the run there")

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Check the last steps."""
        self._stop_at(trainer, self._look(trainer, pl_module))

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Check before a file is written; non-finite weights are never written."""
        self._stop_at(trainer, self._look(trainer, pl_module))
        if bad := _nonfinite(checkpoint["state_dict"].items()):
            raise NonFiniteError(f"{bad[0]} is not finite at step {trainer.global_step}: no checkpoint is written")

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Keep the last good checkpoint if its replacement would not be finite."""
        self._updates = []
        finite = not _nonfinite(pl_module.state_dict().items())
        if isinstance(exception, NonFiniteError):  # raised on all ranks, which must agree before they save together
            finite = trainer.strategy.reduce_boolean_decision(finite)
        for callback in trainer.checkpoint_callbacks:
            if isinstance(callback, ModelCheckpoint) and not finite:
                callback.save_on_exception = False

    def _interval(self, trainer: Trainer, model: LightningModule) -> int:
        seldom = 1 if model.device.type == "cpu" else max(getattr(trainer, "log_every_n_steps", 50), 1)
        interval = seldom if self.every_n_steps is None else self.every_n_steps
        if self.action == "skip" or interval == 1:
            return 1
        # Lightning asks no callback before it saves weights alone.
        unasked = any(getattr(callback, "save_weights_only", False) for callback in trainer.checkpoint_callbacks)
        return 1 if unasked else interval

    def _look(self, trainer: Trainer, model: LightningModule) -> Found | None:
        """The first of the updates at hand that is not finite; gradients, and so the answer, are alike on all ranks."""
        updates, self._updates = self._updates, []
        # The sum is finite just where its parts are: a norm, the root of a float, is far too small to overflow it.
        if not updates or math.isfinite(torch.cat([update.norms for update in updates]).sum().item()):
            return None
        scaler = getattr(trainer.precision_plugin, "scaler", None)
        for update in updates:
            if not update.norms.isfinite().all():
                found = agree(update.found(trainer, model))
                if found.in_loss or scaler is None or scaler.get_scale() < 1:
                    return found
        return None

    def _act(self, trainer: Trainer, optimizer: torch.optim.Optimizer, found: Found) -> None:
        if self.action == "stop" or self._in_a_row >= self.patience:
            self._stop_at(trainer, found)
        self.skipped_steps, self._skipped = self.skipped_steps + 1, True
        if getattr(trainer.precision_plugin, "scaler", None) is None:  # which skips by itself, and asks for gradients
            optimizer.zero_grad(set_to_none=True)  # without a gradient, weights and moments are left alone
        rank_zero_warn(f"{found.message(trainer)}; step skipped")

    def _stop_at(self, trainer: Trainer, found: Found | None) -> None:
        if found is not None:
            row = f" after {self._in_a_row} skipped batches in a row" if self._in_a_row else ""
            raise NonFiniteError(f"{found.message(trainer)}{row}; checkpoints hold the weights from before")


def _terms(model: LightningModule) -> dict[str, Tensor]:
    """Summands of the loss of this batch, by the names under which they are logged."""
    latest = model.latest if isinstance(model, Logged) else {}
    return {f"train/{name}": term for name, term in latest.items() if name != "loss"}


def _nonfinite(state: Iterable[tuple[str, Tensor]]) -> list[str]:
    """Names of floating tensors that are not finite."""
    floats = {name: value for name, value in state if isinstance(value, Tensor) and value.is_floating_point()}
    finite = norms(list(floats.values())).isfinite().tolist()
    return [name for name, good in zip(floats, finite, strict=True) if not good]
