"""Trainer-side callbacks."""

from vaezoo.callbacks.add_regularizer import AddRegularizer
from vaezoo.callbacks.evaluation import EvaluateDisentanglement
from vaezoo.callbacks.last_checkpoint import LastCheckpoint
from vaezoo.callbacks.pictures import Pictures, SaveLabelTraversals, SavePictures
from vaezoo.callbacks.progress import ThroughputBar

__all__ = [
    "AddRegularizer",
    "EvaluateDisentanglement",
    "LastCheckpoint",
    "Pictures",
    "SaveLabelTraversals",
    "SavePictures",
    "ThroughputBar",
]
