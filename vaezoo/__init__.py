"""vaezoo: disentangled representation learning with variational autoencoders.

A VAE here is an encoder, latent groups, a decoder and an ordered dictionary of regularizers; a paper is a preset that
names its latents and its regularizers. Names load when they are first used, so importing the package is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vaezoo.base import VAE
    from vaezoo.callbacks import (
        AddRegularizer,
        Compile,
        EvaluateDisentanglement,
        GuardFinite,
        LastCheckpoint,
        LocalStatistics,
        SaveClassSamples,
        SaveCodeMatrices,
        SaveLabelTraversals,
        SavePictures,
        SavePositionMaps,
        SavePriors,
        SaveTransfers,
        SaveUnitNats,
        StopOnSignal,
    )
    from vaezoo.checkpoints import load
    from vaezoo.latents import ConcreteLatent, GaussianLatent
    from vaezoo.mixture import MixtureLatent
    from vaezoo.models import DIPVAE, TCVAE, AnnealedVAE, BetaVAE, FactorVAE, JointVAE, LaRVAE, PartedVAE, WeLaVAE
    from vaezoo.regularizers import (
        KL,
        AggregatePosterior,
        Capacity,
        CovarianceMatching,
        DiscriminatedTotalCorrelation,
        Entropy,
        LabelLikelihood,
        LabelReconstruction,
        LabelReplacement,
        Overlap,
        Regularizer,
        TotalCorrelation,
        ViewAgreement,
    )
    from vaezoo.storage import AtomicCheckpointIO
    from vaezoo.types import Batch, Forward, Term

__version__ = "0.1.0"

_HOME = {
    "AddRegularizer": "callbacks",
    "AggregatePosterior": "regularizers",
    "AnnealedVAE": "models",
    "AtomicCheckpointIO": "storage",
    "Batch": "types",
    "BetaVAE": "models",
    "Capacity": "regularizers",
    "Compile": "callbacks",
    "ConcreteLatent": "latents",
    "CovarianceMatching": "regularizers",
    "DIPVAE": "models",
    "DiscriminatedTotalCorrelation": "regularizers",
    "Entropy": "regularizers",
    "EvaluateDisentanglement": "callbacks",
    "FactorVAE": "models",
    "Forward": "types",
    "GaussianLatent": "latents",
    "GuardFinite": "callbacks",
    "JointVAE": "models",
    "KL": "regularizers",
    "LaRVAE": "models",
    "LastCheckpoint": "callbacks",
    "LabelLikelihood": "regularizers",
    "LabelReconstruction": "regularizers",
    "LabelReplacement": "regularizers",
    "LocalStatistics": "callbacks",
    "MixtureLatent": "mixture",
    "Overlap": "regularizers",
    "PartedVAE": "models",
    "Regularizer": "regularizers",
    "SaveLabelTraversals": "callbacks",
    "SaveClassSamples": "callbacks",
    "SaveCodeMatrices": "callbacks",
    "SavePositionMaps": "callbacks",
    "SavePriors": "callbacks",
    "SaveTransfers": "callbacks",
    "SaveUnitNats": "callbacks",
    "SavePictures": "callbacks",
    "StopOnSignal": "callbacks",
    "TCVAE": "models",
    "Term": "types",
    "TotalCorrelation": "regularizers",
    "VAE": "base",
    "ViewAgreement": "regularizers",
    "WeLaVAE": "models",
    "load": "checkpoints",
}

__all__ = [
    "DIPVAE",
    "KL",
    "TCVAE",
    "VAE",
    "AddRegularizer",
    "AggregatePosterior",
    "AnnealedVAE",
    "AtomicCheckpointIO",
    "Batch",
    "BetaVAE",
    "Capacity",
    "Compile",
    "ConcreteLatent",
    "CovarianceMatching",
    "DiscriminatedTotalCorrelation",
    "Entropy",
    "EvaluateDisentanglement",
    "FactorVAE",
    "Forward",
    "GaussianLatent",
    "GuardFinite",
    "JointVAE",
    "LaRVAE",
    "LabelLikelihood",
    "LabelReconstruction",
    "LabelReplacement",
    "LastCheckpoint",
    "LocalStatistics",
    "MixtureLatent",
    "Overlap",
    "PartedVAE",
    "Regularizer",
    "SaveClassSamples",
    "SaveCodeMatrices",
    "SaveLabelTraversals",
    "SavePictures",
    "SavePositionMaps",
    "SavePriors",
    "SaveTransfers",
    "SaveUnitNats",
    "StopOnSignal",
    "Term",
    "TotalCorrelation",
    "ViewAgreement",
    "WeLaVAE",
    "load",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"vaezoo.{_HOME[name]}"), name)
    raise AttributeError(f"module 'vaezoo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
