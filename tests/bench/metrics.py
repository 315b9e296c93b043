"""Time every score on 10,000 codes (D = 10, K = 6) beside the reference library, and `vaezoo evaluate` as a whole.

The reference's times are those of disentanglement_lib on one thread (10,000 rows and 5,000 test rows, D = 10, K = 5,
median of 5), with a table lookup for an encoder.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tests.bench.children import ROOT
from tests.bench.timing import best_of
from vaezoo.metrics import functional as F

Rows = tuple[NDArray[np.float64], NDArray[np.int64]]

REFERENCE_SECONDS = {
    "mig": 0.173,
    "sap (svm)": 0.524,
    "sap (R²)": 0.081,
    "modularity and explicitness": 0.974,
    "irs": 0.073,
    "unsupervised": 0.281,
    "factor_vae": 1.436,
    "beta_vae": 1.987,
    "dci": 106.9,
    "udr lasso, 5 runs": 0.226,
    "udr spearman, 5 runs": 5.296,
}


def make_pools(seed: int = 0) -> tuple[Rows, Rows]:
    """Draw training and test rows: six factors turned by a random rotation, and four latents of noise."""
    rng = np.random.default_rng(seed)
    sizes = np.array([3, 6, 10, 8, 8, 4])
    turn, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    factors = rng.integers(sizes, size=(15_000, 6))
    codes = (factors - (sizes - 1) / 2) / np.sqrt((sizes**2 - 1) / 12) @ turn.T
    codes = np.concatenate([codes, rng.normal(size=(15_000, 4))], axis=1)
    return (codes[:10_000], factors[:10_000]), (codes[10_000:], factors[10_000:])


def make_calls(pool: Rows, test: Rows) -> dict[str, Callable[[], object]]:
    """Name a call for every score; those with a reference time come first."""
    codes, factors = pool
    runs = [codes[:, np.random.default_rng(i).permutation(10)] for i in range(5)]
    kl = [np.ones(10)] * 5
    square, shares = np.abs(codes[:, :2]) * 20, np.eye(10)[factors[:, 2]]
    return {
        "mig": lambda: F.mig(codes, factors),
        "sap (svm)": lambda: F.sap_svm(codes, factors, test=test),
        "sap (R²)": lambda: F.sap(codes, factors),
        "modularity and explicitness": lambda: (
            F.modularity(codes, factors),
            F.explicitness(codes, factors, test=test),
        ),
        "irs": lambda: F.irs(codes, factors),
        "unsupervised": lambda: (
            F.gaussian_total_correlation(codes),
            F.gaussian_wasserstein_correlation(codes),
            F.code_mutual_information(codes),
        ),
        "factor_vae": lambda: F.factor_vae_score(codes, factors),
        "beta_vae": lambda: F.beta_vae_score(codes, factors, variant="reference"),
        "dci": lambda: F.dci(codes, factors, test=test),
        "udr lasso, 5 runs": lambda: F.udr(runs, kl),
        "udr spearman, 5 runs": lambda: F.udr(runs, kl, variant="spearman"),
        "mig (adaptive)": lambda: F.mig(codes, factors, variant="adaptive"),
        "sap (two categories)": lambda: F.sap(codes, factors, categorical=(0, 5)),
        "factor_vae (parted)": lambda: F.parted_factor_score(codes, factors),
        "factor_vae (parted, pruned)": lambda: F.parted_factor_score(codes, factors, variant="parted_pruned"),
        "beta_vae (standardised)": lambda: F.beta_vae_score(codes, factors),
        "beta_vae (dip)": lambda: F.beta_vae_score(codes, factors, variant="dip"),
        "infomec": lambda: F.infomec(codes, factors),
        "active units": lambda: F.active_units(codes),
        "kl per unit": lambda: F.kl_per_unit(codes**2),
        "polar error": lambda: F.polar_error(codes, square),
        "cartesian error": lambda: F.cartesian_error(codes, square),
        "label distance": lambda: F.label_distance(codes[:, :6], factors),
        "class accuracy": lambda: F.class_accuracy(shares, factors[:, 2]),
        "cluster accuracy": lambda: F.cluster_accuracy(shares, factors[:, 2]),
        "attribute accuracy": lambda: F.attribute_accuracy(codes, factors > 1, test=(test[0], test[1] > 1)),
        "label accuracy": lambda: F.label_accuracy(factors, factors),
    }


def evaluate_shipped_model() -> None:
    """Run `vaezoo evaluate` in its own process: default scores and intervals of 10,000 drawn images of 3DShapes."""
    command = [sys.executable, "-m", "vaezoo", "evaluate", "--ckpt_path", "pretrained:larvae_3dshapes_demo"]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)


def run(repeats: int = 3) -> list[dict[str, object]]:
    """Measure and return one row a score, one for all but DCI and UDR together, and one for the command."""
    took = best_of(make_calls(*make_pools()), repeats)
    compared = [name for name in REFERENCE_SECONDS if name != "dci" and not name.startswith("udr")]
    took["all but DCI and UDR"] = sum(took[name] for name in compared)
    took |= best_of({"vaezoo evaluate, 10,000 images, intervals": evaluate_shipped_model}, 1)
    theirs = REFERENCE_SECONDS | {"all but DCI and UDR": sum(REFERENCE_SECONDS[name] for name in compared)}
    return [
        {
            "score": name,
            "seconds": round(seconds, 4),
            "reference": theirs.get(name, ""),
            "times faster": round(theirs[name] / seconds, 1) if name in theirs else "",
        }
        for name, seconds in took.items()
    ]
