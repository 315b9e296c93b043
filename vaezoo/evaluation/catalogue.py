"""The scores that an evaluation knows by name, and how many pools their intervals are drawn from."""

import inspect
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, NamedTuple

from vaezoo.metrics import (
    DCI,
    IRS,
    MIG,
    SAP,
    ActiveUnits,
    AttributeAccuracy,
    BetaVAEScore,
    CartesianError,
    ClassAccuracy,
    ClusterAccuracy,
    CodeMutualInformation,
    Explicitness,
    FactorVAEScore,
    GaussianTotalCorrelation,
    GaussianWassersteinCorrelation,
    KLPerUnit,
    LabelAccuracy,
    LabelDistance,
    Modularity,
    PolarError,
    ReconstructionError,
)
from vaezoo.metrics.base import ScoreMetric


class Entry(NamedTuple):
    """A score by name.

    Attributes:
        build: Makes its shell; the seed is passed where it takes one.
        resamples: Pools drawn for its interval: 100 where that takes seconds, few or none for slow scores.
        default: Whether it is computed where no scores are named.
    """

    build: Callable[..., ScoreMetric]
    resamples: int = 100
    default: bool = True


METRICS = {
    "mig_20": Entry(MIG),
    "mig_adaptive": Entry(partial(MIG, "adaptive")),
    "sap_dip": Entry(SAP),
    "sap_reference": Entry(partial(SAP, "reference"), 20, False),
    "dci_fast": Entry(DCI, 10),
    "dci_reference": Entry(partial(DCI, "reference"), 0, False),
    "factor_vae_reference": Entry(FactorVAEScore, 20),
    "factor_vae_parted": Entry(partial(FactorVAEScore, "parted"), 100, False),
    "factor_vae_parted_pruned": Entry(partial(FactorVAEScore, "parted_pruned"), 100, False),
    "beta_vae_standardised": Entry(BetaVAEScore, 20),
    "beta_vae_reference": Entry(partial(BetaVAEScore, "reference"), 20, False),
    "beta_vae_dip": Entry(partial(BetaVAEScore, "dip"), 20, False),
    "beta_vae_dip_continuous": Entry(partial(BetaVAEScore, "dip_continuous"), 20, False),
    "modularity_reference": Entry(Modularity),
    "modularity_active": Entry(partial(Modularity, "active"), 100, False),
    "explicitness": Entry(Explicitness, 20),
    "irs_99": Entry(IRS),
    "gaussian_total_correlation": Entry(GaussianTotalCorrelation),
    "gaussian_wasserstein_correlation": Entry(GaussianWassersteinCorrelation, 100, False),
    "code_mutual_information_20": Entry(CodeMutualInformation, 100, False),
    "active_units": Entry(ActiveUnits),
    "kl": Entry(KLPerUnit),
    "reconstruction_error_squared": Entry(ReconstructionError),
    "reconstruction_error_bernoulli": Entry(partial(ReconstructionError, "bernoulli"), 100, False),
    "class_accuracy": Entry(ClassAccuracy),
    "cluster_accuracy": Entry(ClusterAccuracy),
    "attribute_accuracy": Entry(AttributeAccuracy),
    "label_accuracy": Entry(LabelAccuracy),
    "label_distance": Entry(LabelDistance),
    "polar_error": Entry(PolarError),
    "cartesian_error": Entry(CartesianError),
}


def check(names: Sequence[str]) -> None:
    """Raise ValueError for a score that is not in the catalogue, naming those that are."""
    for name in names:
        if name not in METRICS:
            close = get_close_matches(name, METRICS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise ValueError(f"no metric is called {name!r}{hint} Known: {', '.join(METRICS)}")


def build(name: str, seed: int, **arguments: Any) -> ScoreMetric:
    """Make the shell of a score."""
    make = METRICS[name].build
    seeds = {"seed": seed} if "seed" in inspect.signature(make).parameters else {}
    return make(**seeds, **arguments)


def higher_is_better(name: str) -> bool | None:
    """Whether more of a score is better; None where neither is."""
    return build(name, 0).higher_is_better
