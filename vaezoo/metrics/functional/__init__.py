"""The scores as pure functions of numpy arrays: seeds in, a dictionary of named floats out."""

from vaezoo.metrics.functional.accuracy import (
    attribute_accuracy,
    class_accuracy,
    cluster_accuracy,
    label_accuracy,
    label_distance,
    label_order,
    reconstruction_error,
)
from vaezoo.metrics.functional.beta_vae import beta_vae_score
from vaezoo.metrics.functional.bootstrap import Interval, bootstrap
from vaezoo.metrics.functional.dci import dci
from vaezoo.metrics.functional.explicitness import explicitness
from vaezoo.metrics.functional.factor_vae import factor_vae_score, parted_factor_score
from vaezoo.metrics.functional.infomec import infomec
from vaezoo.metrics.functional.irs import irs
from vaezoo.metrics.functional.mutual_information import mig, modularity
from vaezoo.metrics.functional.polar import cartesian_error, polar_error
from vaezoo.metrics.functional.pool import Scores
from vaezoo.metrics.functional.sap import sap, sap_svm
from vaezoo.metrics.functional.udr import udr
from vaezoo.metrics.functional.unsupervised import (
    active_units,
    code_mutual_information,
    gaussian_total_correlation,
    gaussian_wasserstein_correlation,
    kl_per_unit,
)

__all__ = [
    "Interval",
    "Scores",
    "active_units",
    "attribute_accuracy",
    "beta_vae_score",
    "bootstrap",
    "cartesian_error",
    "class_accuracy",
    "cluster_accuracy",
    "code_mutual_information",
    "dci",
    "explicitness",
    "factor_vae_score",
    "gaussian_total_correlation",
    "gaussian_wasserstein_correlation",
    "infomec",
    "irs",
    "kl_per_unit",
    "label_accuracy",
    "label_distance",
    "label_order",
    "mig",
    "modularity",
    "parted_factor_score",
    "polar_error",
    "reconstruction_error",
    "sap",
    "sap_svm",
    "udr",
]
