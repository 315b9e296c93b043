"""Trainer-side callbacks."""

from vaezoo.callbacks.add_regularizer import AddRegularizer
from vaezoo.callbacks.class_pictures import SaveClassSamples, SavePriors, SaveTransfers
from vaezoo.callbacks.code_pictures import SaveLabelTraversals, SavePositionMaps, SaveUnitNats
from vaezoo.callbacks.compile import Compile
from vaezoo.callbacks.evaluation import EvaluateDisentanglement
from vaezoo.callbacks.finite import GuardFinite, NonFiniteError
from vaezoo.callbacks.last_checkpoint import BestCheckpoint, LastCheckpoint
from vaezoo.callbacks.local_statistics import LocalStatistics
from vaezoo.callbacks.matrix_pictures import SaveCodeMatrices
from vaezoo.callbacks.pictures import Pictures, SavePictures
from vaezoo.callbacks.progress import ThroughputBar
from vaezoo.callbacks.save_config import SaveConfig
from vaezoo.callbacks.stop_on_signal import StopOnSignal

__all__ = [
    "AddRegularizer",
    "BestCheckpoint",
    "Compile",
    "EvaluateDisentanglement",
    "GuardFinite",
    "LastCheckpoint",
    "LocalStatistics",
    "NonFiniteError",
    "Pictures",
    "SaveClassSamples",
    "SaveCodeMatrices",
    "SaveConfig",
    "SaveLabelTraversals",
    "SavePictures",
    "SavePositionMaps",
    "SavePriors",
    "SaveTransfers",
    "SaveUnitNats",
    "StopOnSignal",
    "ThroughputBar",
]
