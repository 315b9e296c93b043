"""Disentanglement scores that compare codes with known factors."""

from collections.abc import Callable
from functools import partial
from typing import Literal

from vaezoo.metrics import functional
from vaezoo.metrics.base import PoolMetric
from vaezoo.metrics.functional.beta_vae import Variant
from vaezoo.metrics.functional.pool import Scores, positive


class MIG(PoolMetric):
    """Mutual information gap (Chen et al., 2018).

    Args:
        variant: "reference" cuts a latent into `num_bins` bins; "adaptive" uses one bin per factor value if there are
            more values than bins, so such a factor can score 1.
        num_bins: Bins of a continuous latent.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """

    def __init__(
        self,
        variant: Literal["reference", "adaptive"] = "reference",
        num_bins: int = 20,
        discrete: tuple[int, ...] = (),
    ) -> None:
        super().__init__(partial(functional.mig, variant=variant, num_bins=num_bins, discrete=discrete))


class SAP(PoolMetric):
    """Separated attribute predictability (Kumar et al., 2018).

    Args:
        variant: "dip" is the paper's R² and balanced accuracy; "reference" is the linear SVM of the reference library,
            which depends on the scale of the codes.
        categorical: Columns of categorical factors ("dip"; "reference" treats all as categories).
        threshold: Latents with a smaller standard deviation are inactive ("dip").
        groups: Columns of continuous latents to score as one ("dip").
        correlation: Latents with at least this correlation are scored as one ("dip").
        test_fraction: Share of the rows held out ("reference").
        seed: Seed of that split ("reference").
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """

    def __init__(
        self,
        variant: Literal["dip", "reference"] = "dip",
        categorical: tuple[int, ...] = (),
        threshold: float = 0.05,
        groups: tuple[tuple[int, ...], ...] = (),
        correlation: float | None = None,
        test_fraction: float = 1 / 3,
        seed: int = 0,
        discrete: tuple[int, ...] = (),
    ) -> None:
        if threshold < 0:
            raise ValueError(f"threshold must be 0 or more, not {threshold}")
        dip = partial(functional.sap, categorical=categorical, threshold=threshold, discrete=discrete)
        dip = partial(dip, groups=groups, correlation=correlation)
        svm = partial(functional.sap_svm, test_fraction=test_fraction, seed=seed, discrete=discrete)
        super().__init__(dip if variant == "dip" else svm)
        self.reads = ("codes", "factor_values" if variant == "dip" else "factors")  # R² needs no bins


class DCI(PoolMetric):
    """Disentanglement, completeness and informativeness (Eastwood and Williams, 2018).

    Args:
        variant: "fast" boosts trees on binned codes; "reference" is scikit-learn's `GradientBoostingClassifier`.
        test_fraction: Share of the rows held out for informativeness.
        seed: Seed of the split and of the trees.
        jobs: Number of factors fitted in parallel threads; -1 is one per core.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """

    wants = 10_000  # importances still grow from 3,000 images to 10,000

    def __init__(
        self,
        variant: Literal["fast", "reference"] = "fast",
        test_fraction: float = 1 / 3,
        seed: int = 0,
        jobs: int = -1,
        discrete: tuple[int, ...] = (),
    ) -> None:
        score = partial(functional.dci, variant=variant, test_fraction=test_fraction, seed=seed, jobs=jobs)
        super().__init__(partial(score, discrete=discrete))


class FactorVAEScore(PoolMetric):
    """FactorVAE score (Kim and Mnih, 2018).

    Args:
        variant: "reference" draws votes from the pool and scores the map on fresh ones; "parted" cuts the pool into
            batches of one factor value and scores the map on its training votes, without votes won by inactive latents,
            as PartedVAE does; in "parted_pruned" only active latents vote.
        votes: Votes to fit the map ("reference").
        test_votes: Votes to score it ("reference").
        batch: Rows per vote. Defaults to 64, or 100 for "parted" and "parted_pruned".
        threshold: Smallest standard deviation of an active latent. Defaults to 0.05, or 0.1 for those two.
        seed: Seed of the votes.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """

    def __init__(
        self,
        variant: Literal["reference", "parted", "parted_pruned"] = "reference",
        votes: int = 10_000,
        test_votes: int = 5_000,
        batch: int | None = None,
        threshold: float | None = None,
        seed: int = 0,
        discrete: tuple[int, ...] = (),
    ) -> None:
        positive(votes=votes, test_votes=test_votes, batch=2 if batch is None else batch)
        rows, deviation = (64, 0.05) if variant == "reference" else (100, 0.1)
        score: Callable[..., Scores] = partial(functional.factor_vae_score, votes=votes, test_votes=test_votes)
        if variant != "reference":
            score = partial(functional.parted_factor_score, variant=variant)
        super().__init__(
            partial(
                score,
                batch=rows if batch is None else batch,
                threshold=deviation if threshold is None else threshold,
                seed=seed,
                discrete=discrete,
            )
        )


class BetaVAEScore(PoolMetric):
    """BetaVAE score (Higgins et al., 2017), called Z-diff by DIP-VAE.

    Args:
        variant: "reference" is logistic regression, which depends on the scale of the codes; "standardised" is the same
            on codes of unit variance; "dip" is the linear SVM of DIP-VAE; "dip_continuous" is the same without
            categorical factors.
        points: Training points of the classifier.
        test_points: Test points.
        pairs: Pairs averaged into one point.
        seed: Seed of the pairs.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
        categorical: Columns of the factors that are categories ("dip_continuous").
    """

    def __init__(
        self,
        variant: Variant = "standardised",
        points: int = 10_000,
        test_points: int = 5_000,
        pairs: int = 64,
        seed: int = 0,
        discrete: tuple[int, ...] = (),
        categorical: tuple[int, ...] = (),
    ) -> None:
        positive(points=points, test_points=test_points, pairs=pairs)
        score = partial(functional.beta_vae_score, variant=variant, points=points, test_points=test_points)
        super().__init__(partial(score, pairs=pairs, seed=seed, discrete=discrete, categorical=categorical))


class Modularity(PoolMetric):
    """Modularity (Ridgeway and Mozer, 2018).

    Args:
        variant: "reference" averages over all latents, constant ones count as 0; "active" ignores constant latents.
        num_bins: Bins of a continuous latent.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """

    def __init__(
        self,
        variant: Literal["reference", "active"] = "reference",
        num_bins: int = 20,
        discrete: tuple[int, ...] = (),
    ) -> None:
        super().__init__(partial(functional.modularity, variant=variant, num_bins=num_bins, discrete=discrete))


class Explicitness(PoolMetric):
    """Explicitness (Ridgeway and Mozer, 2018).

    Args:
        test_fraction: Share of the rows held out.
        seed: Seed of the split.
    """

    def __init__(self, test_fraction: float = 1 / 3, seed: int = 0) -> None:
        super().__init__(partial(functional.explicitness, test_fraction=test_fraction, seed=seed))


class InfoMEC(PoolMetric):
    """Modularity, explicitness and compactness in units of information (Hsu et al., 2023).

    Args:
        seed: Seed of the noise that separates equal codes.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """

    bootstrapped = False

    def __init__(self, seed: int = 0, discrete: tuple[int, ...] = ()) -> None:
        super().__init__(partial(functional.infomec, seed=seed, discrete=discrete))


class IRS(PoolMetric):
    """Interventional robustness score (Suter et al., 2019).

    Args:
        quantile: Quantile of the deviations within a factor value; 1 is the paper's maximum.
        num_bins: Bins of a factor.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """

    def __init__(self, quantile: float = 0.99, num_bins: int = 20, discrete: tuple[int, ...] = ()) -> None:
        super().__init__(partial(functional.irs, quantile=quantile, num_bins=num_bins, discrete=discrete))
