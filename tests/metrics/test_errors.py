"""Bad input says what is wrong and what to do."""

from typing import Any

import numpy as np
import pytest

from tests.helpers.oracle import grid_sample, standardised
from tests.helpers.supervised import SUPERVISED
from vaezoo import metrics as M
from vaezoo.metrics import functional as F

FACTORS = grid_sample((3, 4), 200)
CODES = standardised(FACTORS)
UNSUPERVISED = [F.gaussian_total_correlation, F.gaussian_wasserstein_correlation, F.code_mutual_information]


@pytest.mark.parametrize("name", SUPERVISED)
def test_every_supervised_score_refuses_broken_pools(name: str) -> None:
    score, broken = SUPERVISED[name], CODES.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"codes holds NaN or infinity in columns \[1\]"):
        score(broken, FACTORS)
    with pytest.raises(ValueError, match="factors holds NaN"):
        score(CODES, np.where(FACTORS > 1, np.inf, FACTORS))
    with pytest.raises(ValueError, match="codes holds 200 rows and factors 199"):
        score(CODES, FACTORS[1:])
    with pytest.raises(ValueError, match="needs at least"):
        score(CODES[:1], FACTORS[:1])
    with pytest.raises(ValueError, match=r"codes must have shape"):
        score(CODES[:, 0], FACTORS)
    with pytest.raises(ValueError, match="constant value in every column"):
        score(CODES, np.ones((200, 2)))
    if name not in ("sap_dip", "irs_99"):  # these take continuous factors
        with pytest.raises(ValueError, match=r"column 1 .* never repeats a value: bin it"):
            score(CODES, np.stack([FACTORS[:, 0], np.linspace(0, 1, 200)], axis=1))
    if name != "explicitness":
        with pytest.raises(ValueError, match="does not fit 2 columns"):
            score(CODES, FACTORS, discrete=(3,))
        with pytest.raises(ValueError, match="not probabilities"):
            score(CODES, FACTORS, discrete=(2,))


@pytest.mark.parametrize("score", UNSUPERVISED)
def test_every_unsupervised_score_refuses_broken_codes(score: Any) -> None:
    with pytest.raises(ValueError, match="codes holds NaN"):
        score(np.full((100, 2), np.nan))
    with pytest.raises(ValueError, match=r"needs (at least|more rows)"):
        score(CODES[:2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.beta_vae_score(CODES, FACTORS[:, :1]), "needs two"),
        (lambda: F.sap(CODES, FACTORS, categorical=(2,)), "outside the 2 factors"),
        (lambda: F.irs(CODES, FACTORS, quantile=0), "quantile"),
        (lambda: F.factor_vae_score(CODES, FACTORS, batch=1), "batch=1 has no variance"),
        (lambda: F.dci(CODES, FACTORS, test_fraction=1), "test_fraction"),
        (lambda: F.dci(CODES, FACTORS, test=(CODES[:, :1], FACTORS)), "test must hold"),
        (lambda: F.udr([CODES], [np.ones(2)]), "two runs or more"),
        (lambda: F.udr([CODES, CODES], [np.ones(2), np.ones(3)]), "one mean value per latent"),
        (lambda: F.polar_error(CODES[:, :1], FACTORS), "D at least 2"),
        (lambda: F.cartesian_error(CODES, FACTORS[1:]), "positions"),
        (lambda: F.label_distance(CODES, FACTORS[1:]), "must have one shape"),
        (lambda: F.cluster_accuracy(CODES, FACTORS), "labels"),
        (lambda: F.class_accuracy(CODES * np.nan, FACTORS[:, 0]), "NaN"),
        (lambda: F.attribute_accuracy(CODES, FACTORS, test=(CODES, FACTORS)), "two values each"),
        (lambda: F.label_accuracy(CODES, FACTORS[1:]), "must have one shape"),
        (lambda: F.label_accuracy(CODES, FACTORS * [1, np.nan]), "no image shows label 1"),
        (lambda: F.label_order(CODES, FACTORS[1:]), "must be"),
        (lambda: F.label_order(CODES, FACTORS * [1, np.nan]), "label 1 has fewer than two"),
        (lambda: F.label_order(CODES, FACTORS * [1, 0]), "label 1 has fewer than two"),
        (lambda: F.sap(CODES, FACTORS, groups=[[0, 2]]), "2 continuous latents"),
        (lambda: F.sap(CODES, FACTORS, groups=[[0, 1], [1]]), "once at most"),
        (lambda: F.sap(CODES, FACTORS, correlation=0), "correlation=0 must be above 0"),
        (lambda: M.SAP(threshold=-1), "threshold must be 0 or more"),
        (lambda: M.BetaVAEScore("dip", pairs=0), "pairs must be 1 or more, not 0"),
        (lambda: M.FactorVAEScore("parted", batch=-1), "batch must be 1 or more, not -1"),
        (lambda: F.bootstrap(F.mig, CODES, FACTORS, level=1), "level"),
    ],
)
def test_other_errors_name_the_argument(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
