"""Trainer-side callbacks."""

from vaezoo.callbacks.add_regularizer import AddRegularizer
from vaezoo.callbacks.checkpoints import BestCheckpoint, LastCheckpoint
from vaezoo.callbacks.compile import Compile
from vaezoo.callbacks.evaluation import EvaluateDisentanglement
from vaezoo.callbacks.guard import GuardFinite, NonFiniteError
from vaezoo.callbacks.local_statistics import LocalStatistics
from vaezoo.callbacks.note_settings import NoteSettings
from vaezoo.callbacks.progress import ProgressLines, ThroughputBar
from vaezoo.callbacks.save_config import SaveConfig
from vaezoo.callbacks.signals import StopOnSignal

__all__ = [
    "AddRegularizer",
    "BestCheckpoint",
    "Compile",
    "EvaluateDisentanglement",
    "GuardFinite",
    "LastCheckpoint",
    "LocalStatistics",
    "NonFiniteError",
    "NoteSettings",
    "ProgressLines",
    "SaveConfig",
    "StopOnSignal",
    "ThroughputBar",
]
