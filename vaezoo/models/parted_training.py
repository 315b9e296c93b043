"""How PartedVAE trains: two optimizers, which take turns within each batch, and their plateau schedulers."""

from collections.abc import Sequence

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from vaezoo.distributed import same_on_all_ranks

SUPERVISED, FULL = 0, 1  # the optimizers, in their order


class TwoOptimizers(LightningModule):
    """Manual optimization with a supervised and a full optimizer; only one of the two counts as the Trainer's step.

    Learning rates are halved on plateaus of the epoch's mean losses, an epoch being as many batches as the loader has.
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
            loss: What to step against.
            counted: Whether the step is one of the Trainer's, by which `max_steps` goes.
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
        """At an epoch's end, halve learning rates where the mean loss stopped falling; ranks follow the first one's."""
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
    """A scheduler for each optimizer that halves its learning rate, unless that changes it by less than eps."""
    return [
        ReduceLROnPlateau(optimizer, factor=0.5, patience=patience, cooldown=wait, threshold=threshold, eps=least)
        for optimizer, wait, threshold, least in zip(optimizers, cooldowns, thresholds, eps, strict=True)
    ]
