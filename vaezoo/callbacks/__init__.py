"""Trainer-side callbacks."""

from vaezoo.callbacks.add_regularizer import AddRegularizer
from vaezoo.callbacks.last_checkpoint import LastCheckpoint
from vaezoo.callbacks.pictures import SavePictures
from vaezoo.callbacks.progress import ThroughputBar

__all__ = ["AddRegularizer", "LastCheckpoint", "SavePictures", "ThroughputBar"]
