"""Pluggable terms of a VAE's loss."""

from vaezoo.regularizers.aggregate_posterior import AggregatePosterior
from vaezoo.regularizers.base import Regularizer
from vaezoo.regularizers.capacity import Capacity
from vaezoo.regularizers.covariance import CovarianceMatching
from vaezoo.regularizers.discriminator import DiscriminatedTotalCorrelation
from vaezoo.regularizers.entropy import Entropy
from vaezoo.regularizers.kl import KL
from vaezoo.regularizers.label_likelihood import LabelLikelihood
from vaezoo.regularizers.label_reconstruction import LabelReconstruction
from vaezoo.regularizers.label_replacement import LabelReplacement
from vaezoo.regularizers.overlap import Overlap
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
