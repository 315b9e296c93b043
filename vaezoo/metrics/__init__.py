"""Disentanglement scores: `torchmetrics.Metric` classes over the pure functions of `vaezoo.metrics.functional`.

`update` collects codes (B, D) and factors (B, K) over batches and ranks; `compute` returns named float64 scalars;
`metric(codes, factors)` does both. Score names include the variant:

| shell | scores, by variant | beside them |
|---|---|---|
| `MIG` | `mig_20` (the number of bins), `mig_adaptive` | |
| `SAP` | `sap_dip`, `sap_reference` | reference: `…_seed` |
| `DCI` | `dci_fast_disentanglement`, `…_completeness`, `…_informativeness`; `dci_reference_…` | `…_train`, `…_seed` |
| `FactorVAEScore` | `factor_vae_reference` | `…_active` (latents), `…_train`, `…_seed` |
| `FactorVAEScore` | `factor_vae_parted`, `factor_vae_parted_pruned` | `…_active`, `…_seed` |
| `BetaVAEScore` | `beta_vae_standardised`, `beta_vae_reference`, `beta_vae_dip` | `…_train`, `…_seed` |
| `BetaVAEScore` | `beta_vae_dip_continuous` (without factors that are categories) | the same |
| `Modularity` | `modularity_reference`, `modularity_active` | |
| `Explicitness` | `explicitness` | `…_train`, `…_seed` |
| `InfoMEC` | `infomec_modularity`, `infomec_explicitness`, `infomec_compactness` | `infomec_seed` |
| `IRS` | `irs_99` (the quantile in percent) | |
| `GaussianTotalCorrelation` | `gaussian_total_correlation` | |
| `GaussianWassersteinCorrelation` | `gaussian_wasserstein_correlation` | `…_normalised` |
| `CodeMutualInformation` | `code_mutual_information_20` (the number of bins) | |
| `ActiveUnits` | `active_units` | |
| `KLPerUnit` | `kl` | `kl_active_units`, `kl_unit_0`, … |
| `UDR` | `udr_lasso`, `udr_spearman` (means over runs) | `…_run_0`, … |
| `LabelDistance` | `label_distance` | `…_0`, … (errors of single labels) |
| `PolarError` | `polar_error` | |
| `CartesianError` | `cartesian_error` | |
| `ClassAccuracy` | `class_accuracy` | |
| `ClusterAccuracy` | `cluster_accuracy` | |
| `AttributeAccuracy` | `attribute_accuracy` (mean over attributes) | one an attribute, by its name |
| `LabelAccuracy` | `label_accuracy` (mean over labels) | one a label, by its name |
| `LabelOrder` | `label_order` (mean over labels) | one a label, by its name |
| `ReconstructionError` | `reconstruction_error_squared`, `reconstruction_error_bernoulli` | |

Codes may end in the probability vectors of discrete latents: with `discrete=(10, 3)` the last 13 columns are two such
vectors, and each counts as one latent. Factors are any repeating numbers and need not form a complete grid; constant
factors are ignored. With a fixed seed a score is the same to the bit for any row order. `functional.bootstrap` computes
confidence intervals. `evaluate(codes, factors)` computes all applicable scores, as `vaezoo evaluate --codes` does.
"""

from vaezoo.metrics.given import evaluate
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
    "InfoMEC",
    "KLPerUnit",
    "LabelAccuracy",
    "LabelDistance",
    "LabelOrder",
    "Modularity",
    "PolarError",
    "ReconstructionError",
    "evaluate",
]
