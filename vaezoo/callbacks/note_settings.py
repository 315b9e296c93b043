"""Store run settings in checkpoints."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from vaezoo.runs.resuming import SETTINGS


class NoteSettings(Callback):
    """Stores in every checkpoint the settings that a resumed run must share, for `require_same_settings`.

    Args:
        settings: Plain data by option name.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Add them to the checkpoint."""
        checkpoint[SETTINGS] = self.settings
