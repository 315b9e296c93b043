"""Save the configuration that repeats a run."""

from pathlib import Path

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.cli import SaveConfigCallback

from vaezoo.runs.files import atomic_write
from vaezoo.runs.folder import RunFolder


class SaveConfig(SaveConfigCallback):
    """Writes `config.yaml` atomically, as later commands rely on it."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Write it once, to the run's folder."""
        folder = trainer.log_dir  # a collective call: on every rank
        if self.already_saved or folder is None:
            return
        if trainer.is_global_zero:
            with atomic_write(RunFolder(Path(folder)).config) as draft:
                draft.write_text(self.parser.dump(self.config, skip_none=False), encoding="utf-8")
        self.already_saved = True
