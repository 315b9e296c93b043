"""Every supervised score, at budgets that tests can afford."""

from collections.abc import Callable
from functools import partial

from vaezoo.metrics import functional as F

few_votes = partial(F.factor_vae_score, votes=2_000, test_votes=1_000)
few_points = partial(F.beta_vae_score, points=2_000, test_points=1_000)
few_svm_points = partial(few_points, variant="dip", points=8_000)
SUPERVISED: dict[str, Callable[..., F.Scores]] = {
    "mig_20": F.mig,
    "mig_adaptive": partial(F.mig, variant="adaptive"),
    "sap_dip": F.sap,
    "modularity_reference": F.modularity,
    "modularity_active": partial(F.modularity, variant="active"),
    "explicitness": F.explicitness,
    "infomec_modularity": F.infomec,
    "infomec_explicitness": F.infomec,
    "infomec_compactness": F.infomec,
    "irs_99": F.irs,
    "dci_fast_disentanglement": F.dci,
    "factor_vae_reference": few_votes,
    "factor_vae_parted": F.parted_factor_score,
    "factor_vae_parted_pruned": partial(F.parted_factor_score, variant="parted_pruned"),
    "beta_vae_standardised": few_points,
    "beta_vae_dip": few_svm_points,
}
