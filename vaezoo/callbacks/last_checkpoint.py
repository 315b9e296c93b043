"""The checkpoint from which an interrupted run continues."""

from pathlib import Path

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint


class LastCheckpoint(ModelCheckpoint):
    """Keeps `last.ckpt` up to date: every few steps, when training ends and when it is interrupted.

    Args:
        every_n_train_steps: Optimizer steps between two saves.
    """

    def __init__(self, every_n_train_steps: int = 1000) -> None:
        super().__init__(
            filename="last",
            every_n_train_steps=every_n_train_steps,
            save_on_exception=True,
            enable_version_counter=False,
        )

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Save the final state, which seldom falls on a multiple of the interval."""
        if self.dirpath is not None:
            trainer.save_checkpoint(Path(self.dirpath) / "last.ckpt", weights_only=False)  # optimizers as well
