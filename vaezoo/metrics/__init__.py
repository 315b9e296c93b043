"""Disentanglement scores as `torchmetrics.Metric` shells over the pure functions of `vaezoo.metrics.functional`.

Every shell gathers codes (B, D) and factors (B, K) by `update`, over batches and over ranks, and returns named float64
scalars by `compute`; `metric(codes, factors)` does both. The name of a score tells its variant:

| shell | variant: key, and keys beside it |
|---|---|
| `MIG` | reference: `mig_20` (the number of bins); adaptive: `mig_adaptive` |
| `SAP` | dip: `sap_dip`; reference: `sap_reference`, `…_seed` |
| `DCI` | fast, reference: `dci_fast_disentanglement`, `…_completeness`, `…_informativeness`,
  `…_informativeness_train`, `…_seed` |
| `FactorVAEScore` | reference, parted: `factor_vae_reference`, `…_active` (latents), `…_seed`; reference: `…_train` |
| `BetaVAEScore` | standardised, reference, dip: `beta_vae_standardised`, `…_train`, `…_seed` |
| `Modularity` | reference, active: `modularity_reference` |
| `Explicitness` | `explicitness`, `…_train`, `…_seed` |
| `IRS` | `irs_99` (the quantile in percent) |
| `GaussianTotalCorrelation` | `gaussian_total_correlation` |
| `GaussianWassersteinCorrelation` | `gaussian_wasserstein_correlation`, `…_normalised` |
| `CodeMutualInformation` | `code_mutual_information_20` (the number of bins) |
| `ActiveUnits` | `active_units` |
| `KLPerUnit` | `kl`, `kl_active_units`, `kl_unit_0`, … |
| `UDR` | lasso, spearman: `udr_lasso` (mean), `udr_lasso_run_0`, … |
| `LabelDistance` | `label_distance` |
| `PolarError`, `CartesianError` | `polar_error`, `cartesian_error` |
| `ClassAccuracy`, `ClusterAccuracy` | `class_accuracy`, `cluster_accuracy` |
| `AttributeAccuracy` | `attribute_accuracy` (mean), `attribute_accuracy_0`, …, `…_seed` |
| `ReconstructionError` | squared, bernoulli: `reconstruction_error_squared` |

Codes may end in the probability vectors of discrete latents: `discrete=(10, 3)` says that the last 13 columns are two
of them, and each then counts as one latent. Factors are any numbers that repeat, a whole grid or not; those that never
vary are left out. A seed means the same score to the bit, whatever the order of the rows. `functional.bootstrap` gives
confidence intervals.
"""

from vaezoo.metrics.labels import (
    AttributeAccuracy,
    CartesianError,
    ClassAccuracy,
    ClusterAccuracy,
    LabelDistance,
    PolarError,
    ReconstructionError,
)
from vaezoo.metrics.supervised import DCI, IRS, MIG, SAP, BetaVAEScore, Explicitness, FactorVAEScore, Modularity
from vaezoo.metrics.unsupervised import (
    UDR,
    ActiveUnits,
    CodeMutualInformation,
    GaussianTotalCorrelation,
    GaussianWassersteinCorrelation,
    KLPerUnit,
)

__all__ = [
    "DCI",
    "IRS",
    "MIG",
    "SAP",
    "UDR",
    "ActiveUnits",
    "AttributeAccuracy",
    "BetaVAEScore",
    "CartesianError",
    "ClassAccuracy",
    "ClusterAccuracy",
    "CodeMutualInformation",
    "Explicitness",
    "FactorVAEScore",
    "GaussianTotalCorrelation",
    "GaussianWassersteinCorrelation",
    "KLPerUnit",
    "LabelDistance",
    "Modularity",
    "PolarError",
    "ReconstructionError",
]
