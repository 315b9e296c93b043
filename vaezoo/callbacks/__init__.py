"""Trainer-side callbacks."""

from vaezoo.callbacks.add_regularizer import AddRegularizer
from vaezoo.callbacks.class_pictures import SaveClassSamples, SavePriors, SaveTransfers
from vaezoo.callbacks.code_pictures import SaveLabelTraversals, SavePositionMaps, SaveUnitNats
from vaezoo.callbacks.compile import Compile
from vaezoo.callbacks.evaluation import EvaluateDisentanglement
from vaezoo.callbacks.last_checkpoint import LastCheckpoint
from vaezoo.callbacks.local_statistics import LocalStatistics
from vaezoo.callbacks.matrix_pictures import SaveCodeMatrices
from vaezoo.callbacks.pictures import Pictures, SavePictures
from vaezoo.callbacks.progress import ThroughputBar

__all__ = [
    "AddRegularizer",
    "Compile",
    "EvaluateDisentanglement",
    "LastCheckpoint",
    "LocalStatistics",
    "Pictures",
    "SaveClassSamples",
    "SaveCodeMatrices",
    "SaveLabelTraversals",
    "SavePictures",
    "SavePositionMaps",
    "SavePriors",
    "SaveTransfers",
    "SaveUnitNats",
    "ThroughputBar",
]
