"""All scores by name: the single list used by evaluation, help, studies, tracking and dashboard."""

import inspect
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from vaezoo.metrics.base import ScoreMetric
from vaezoo.metrics.labels import (
    AttributeAccuracy,
    CartesianError,
    ClassAccuracy,
    ClusterAccuracy,
    LabelAccuracy,
    LabelDistance,
    LabelOrder,
    PolarError,
    ReconstructionError,
)
from vaezoo.metrics.supervised import (
    DCI,
    IRS,
    MIG,
    SAP,
    BetaVAEScore,
    Explicitness,
    FactorVAEScore,
    InfoMEC,
    Modularity,
)
from vaezoo.metrics.unsupervised import (
    ActiveUnits,
    CodeMutualInformation,
    GaussianTotalCorrelation,
    GaussianWassersteinCorrelation,
    KLPerUnit,
)
from vaezoo.text import did_you_mean


class Entry(NamedTuple):
    """A score by name.

    Attributes:
        build: Builds its metric; receives the seed if it takes one.
        resamples: Bootstrap resamples for its interval: 100 for fast scores, few or none for slow ones.
        default: Whether it is computed by default.
        parts: Name suffixes of its scores, if it returns several of equal rank.
    """

    build: Callable[..., ScoreMetric]
    resamples: int = 100
    default: bool = True
    parts: tuple[str, ...] = ()

    @property
    def shell(self) -> type[ScoreMetric]:
        """Its metric class."""
        shell: type[ScoreMetric] = self.build.func if isinstance(self.build, partial) else self.build  # type: ignore[assignment]
        return shell


_DCI = ("disentanglement", "completeness", "informativeness")


METRICS = {
    "mig_20": Entry(MIG),
    "mig_adaptive": Entry(partial(MIG, "adaptive")),
    "sap_dip": Entry(SAP),
    "sap_reference": Entry(partial(SAP, "reference"), 20, False),
    "dci_fast": Entry(DCI, 10, parts=_DCI),
    "dci_reference": Entry(partial(DCI, "reference"), 0, False, _DCI),
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
    "infomec": Entry(InfoMEC, 0, False, ("modularity", "explicitness", "compactness")),
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
    "label_order": Entry(LabelOrder, 100, False),
    "label_distance": Entry(LabelDistance),
    "polar_error": Entry(PolarError),
    "cartesian_error": Entry(CartesianError),
}


DETAIL = re.compile(r"_(seed|train|\d+)$|^attribute_accuracy_")
"""Names of details: seeds, scores on training images, single latents or labels, and each of 40 attributes."""

_FAMILIES = {
    FactorVAEScore: "FactorVAE score",
    BetaVAEScore: "BetaVAE score",
    ClassAccuracy: "Accuracy",
    ClusterAccuracy: "Accuracy",
    AttributeAccuracy: "Accuracy",
}


def check(names: Sequence[str]) -> None:
    """Raise ValueError for an unknown score; the error lists the known ones."""
    for name in names:
        if name not in METRICS:
            hint = did_you_mean(name, METRICS) or "."
            raise ValueError(f"no metric is called {name!r}{hint} Known: {', '.join(METRICS)}")


def build(name: str, seed: int, **arguments: Any) -> ScoreMetric:
    """Build the metric of a score."""
    make = METRICS[name].build
    seeds = {"seed": seed} if "seed" in inspect.signature(make).parameters else {}
    return make(**seeds, **arguments)


def score_names(name: str) -> list[str]:
    """Main scores of a metric, without details."""
    return [f"{name}_{part}" for part in METRICS[name].parts] or [name]


def higher_is_better(name: str) -> bool | None:
    """Whether higher is better; None if neither. Ignores latent groups in the name."""
    return METRICS[name.partition("[")[0]].shell.higher_is_better


def family(name: str) -> str:
    """Common name of a metric and its variants."""
    shell = METRICS[name].shell
    return _FAMILIES.get(shell, shell.__name__)
