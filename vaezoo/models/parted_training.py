"""PartedVAE training: two optimizers that take turns within each batch, with plateau schedulers."""

from collections.abc import Sequence

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from vaezoo.distributed import same_on_all_ranks

SUPERVISED, FULL = 0, 1  # the optimizers, in their order


class TwoOptimizers(LightningModule):
    """Manual optimization with a supervised and a full optimizer; the Trainer counts only one of their steps.

    Learning rates are halved when the mean loss of an epoch plateaus. One epoch is one pass over the loader.
    """

    epoch_losses: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        # Sum and number of this epoch's supervised and full losses; buffers, as a run may resume within an epoch.
        self.register_buffer("epoch_losses", torch.zeros(2, 2))

    def optimize(self, which: int, loss: Tensor, counted: bool = True) -> None:
        """One step of an optimizer.

        Args:
            which: `SUPERVISED` or `FULL`.
            loss: Loss to minimise.
            counted: Whether the step counts towards the Trainer's `max_steps`.
        """
        optimizer = self.optimizers()[which]  # type: ignore[index]  # a list, as there are two
        optimizer.zero_grad()
        if which == SUPERVISED and self.trainer.world_size > 1:
            loss = loss + 0 * sum(p.sum() for p in self.parameters())  # DDP waits for every parameter's gradient
        self.manual_backward(loss)
        if counted:
            optimizer.step()
        else:  # not by the wrapper, whose step the Trainer counts
            self.trainer.strategy.optimizer_step(optimizer.optimizer, lambda: None)
        # A loss that is not finite, whose step a guard may skip, is left out of the epoch's mean.
        self.epoch_losses[which] += torch.stack([loss, torch.ones_like(loss)]).detach().where(loss.isfinite(), 0.0)

    def reduce_lr(self) -> None:
        """At the end of an epoch, halve learning rates whose mean loss plateaued. Rank 0 decides."""
        # Not `is_last_batch`, which is off by an epoch in a run that resumes at the end of one.
        if self.trainer.global_step % self.trainer.num_training_batches:
            return
        losses = same_on_all_ranks(self.epoch_losses).tolist()
        for scheduler, (total, count) in zip(self.lr_schedulers(), losses, strict=True):  # type: ignore[arg-type]
            if count:
                scheduler.step(total / count)
        self.epoch_losses.zero_()


def plateau_schedulers(
    optimizers: Sequence[Optimizer],
    patience: int,
    cooldowns: Sequence[int],
    thresholds: Sequence[float],
    eps: Sequence[float],
) -> list[ReduceLROnPlateau]:
    """One scheduler per optimizer; it halves the learning rate, unless the change is below eps."""
    return [
        ReduceLROnPlateau(optimizer, factor=0.5, patience=patience, cooldown=wait, threshold=threshold, eps=least)
        for optimizer, wait, threshold, least in zip(optimizers, cooldowns, thresholds, eps, strict=True)
    ]
