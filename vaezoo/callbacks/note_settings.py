"""What a checkpoint says about the run beside its model."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from vaezoo.runs.resuming import SETTINGS


class NoteSettings(Callback):
    """Notes in every checkpoint what else decides how the run goes on, for `require_same_settings`.

    Args:
        settings: Plain data by the names of the options.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Add them to the checkpoint."""
        checkpoint[SETTINGS] = self.settings
