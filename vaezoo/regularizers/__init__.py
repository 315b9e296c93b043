"""Pluggable terms of a VAE's loss."""

from vaezoo.regularizers.base import Regularizer
from vaezoo.regularizers.capacity import Capacity
from vaezoo.regularizers.classes import AggregatePosterior, Entropy, Overlap
from vaezoo.regularizers.covariance import CovarianceMatching
from vaezoo.regularizers.discriminator import DiscriminatedTotalCorrelation
from vaezoo.regularizers.kl import KL
from vaezoo.regularizers.label_likelihood import LabelLikelihood
from vaezoo.regularizers.labels import LabelReconstruction, LabelReplacement
from vaezoo.regularizers.total_correlation import TotalCorrelation
from vaezoo.regularizers.views import ViewAgreement

__all__ = [
    "KL",
    "AggregatePosterior",
    "Capacity",
    "CovarianceMatching",
    "DiscriminatedTotalCorrelation",
    "Entropy",
    "LabelLikelihood",
    "LabelReconstruction",
    "LabelReplacement",
    "Overlap",
    "Regularizer",
    "TotalCorrelation",
    "ViewAgreement",
]
