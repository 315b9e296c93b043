"""Scores that need no factors."""

from functools import partial
from typing import Literal

from torch import Tensor
from torchmetrics import Metric

from vaezoo.metrics import functional
from vaezoo.metrics.base import CodeMetric, as_array, as_tensors


class GaussianTotalCorrelation(CodeMetric):
    """Total correlation of a Gaussian fitted to the codes, in nats.

    Args:
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """

    def __init__(self, discrete: tuple[int, ...] = ()) -> None:
        super().__init__(partial(functional.gaussian_total_correlation, discrete=discrete))


class GaussianWassersteinCorrelation(CodeMetric):
    """Squared Wasserstein distance of a Gaussian fitted to the codes from one with independent latents.

    Args:
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """

    def __init__(self, discrete: tuple[int, ...] = ()) -> None:
        super().__init__(partial(functional.gaussian_wasserstein_correlation, discrete=discrete))


class CodeMutualInformation(CodeMetric):
    """Mean mutual information of two different latents, in nats.

    Args:
        num_bins: Bins of a continuous latent.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """

    def __init__(self, num_bins: int = 20, discrete: tuple[int, ...] = ()) -> None:
        super().__init__(partial(functional.code_mutual_information, num_bins=num_bins, discrete=discrete))


class ActiveUnits(CodeMetric):
    """Number of latents whose posterior means vary (Burda et al., 2016).

    Args:
        threshold: Least variance of an active latent.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """

    wants = 100
    higher_is_better = None

    def __init__(self, threshold: float = 0.01, discrete: tuple[int, ...] = ()) -> None:
        super().__init__(partial(functional.active_units, threshold=threshold, discrete=discrete))


class KLPerUnit(CodeMetric):
    """Mean KL divergence of each latent, and their sum, in nats; `update` takes the divergences (B, D).

    Args:
        threshold: Least mean divergence of a latent that counts as active.
    """

    higher_is_better = None
    wants = 100
    reads = ("nats",)

    def __init__(self, threshold: float = 0.01) -> None:
        super().__init__(partial(functional.kl_per_unit, threshold=threshold))


class UDR(Metric):
    """Unsupervised disentanglement ranking across runs of one model (Duan et al., 2020).

    Args:
        variant: Similarity of two latents: "lasso" coefficients or "spearman" rank correlation.
        alpha: Penalty of the lasso.
        kl_threshold: Ignore latents with a smaller KL divergence. None keeps all.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    codes: list[Tensor]
    kl: list[Tensor]

    def __init__(
        self,
        variant: Literal["lasso", "spearman"] = "lasso",
        alpha: float = 0.1,
        kl_threshold: float | None = 0.01,
    ) -> None:
        super().__init__()
        self.score = partial(functional.udr, variant=variant, alpha=alpha, kl_threshold=kl_threshold)
        self.add_state("codes", default=[], dist_reduce_fx="cat")
        self.add_state("kl", default=[], dist_reduce_fx="cat")

    def update(self, codes: Tensor, kl: Tensor) -> None:
        """Add the codes and KL divergences of one batch in every run, both (runs, B, D)."""
        if codes.ndim != 3 or codes.shape != kl.shape:
            raise ValueError(f"codes {tuple(codes.shape)} and kl {tuple(kl.shape)} must both be (runs, batch, latents)")
        # Examples come first, so that batches and ranks are joined along them.
        self.codes.append(codes.detach().transpose(0, 1))
        self.kl.append(kl.detach().transpose(0, 1))

    def compute(self) -> dict[str, Tensor]:
        """Return the score of each run and their mean."""
        codes, kl = as_array(self.codes), as_array(self.kl)  # (N, runs, D)
        return as_tensors(self.score(list(codes.transpose(1, 0, 2)), list(kl.mean(axis=0))))
