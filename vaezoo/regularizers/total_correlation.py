"""Total correlation of the aggregate posterior, estimated from the minibatch."""

from collections.abc import Sequence

from torch import Tensor

from vaezoo.distributed import gather
from vaezoo.functional import Estimator, aggregate_log_densities, gaussian_log_density
from vaezoo.regularizers.base import Host
from vaezoo.regularizers.groups import SpanningTerm
from vaezoo.types import Batch, Forward, Term


class TotalCorrelation(SpanningTerm):
    """weight · KL(q(z) || Π_l q(z_l)), on top of the whole KL (Chen et al., 2018, Eq. 2).

    β-TCVAE is KL plus this term at weight β − 1. Logs the three parts of the KL: `mi`, the index-code mutual
    information; `tc`, the total correlation; and `dwkl`, the dimension-wise KL. `dwkl` is skipped if a group's prior is
    not standard normal, as for PartedVAE's u; the total correlation does not depend on the prior.

    Args:
        latent: Latent group, or groups to concatenate. Defaults to all groups with a standard normal prior.
        weight: Weight of the total correlation.
        dataset_size: Number of training images. Defaults to the model's, or to the batch size before training. It
            shifts the logged values of "mws" by a constant and sets the weights of "mss".
        estimator: "mws", minibatch-weighted sampling; "mss", minibatch-stratified sampling; "batch", the batch alone.
    """

    signed = ("weight",)  # β − 1 of a β-TCVAE with β below 1

    def __init__(
        self,
        latent: Sequence[str] | str | None = None,
        weight: float = 5.0,
        dataset_size: int | None = None,
        estimator: Estimator = "mws",
    ) -> None:
        super().__init__(latent)
        if estimator not in ("mws", "mss", "batch"):
            raise ValueError(f"estimator must be 'mws', 'mss' or 'batch', not {estimator!r}")
        if dataset_size is not None and dataset_size < 1:
            raise ValueError(f"dataset_size must be at least 1, not {dataset_size}")
        self._given_size = self.dataset_size = dataset_size
        self.weight, self.estimator, self._standard_normal = weight, estimator, True

    def attach(self, model: Host) -> None:
        """Read the number of training images and the priors from the model."""
        super().attach(model)
        self._standard_normal = all(model.latents[name].standard_normal for name in self.latents)
        self.dataset_size = model.dataset_size if self._given_size is None else self._given_size

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """Weighted total correlation of the global batch."""
        q = self.posterior(out)
        # Densities of one rank's samples need the posteriors of all.
        z, mean, logvar = gather(self.sample(out)), gather(q.mean), gather(q.logvar)
        joint, marginals = aggregate_log_densities(z, mean, logvar, self.dataset_size, self.estimator)
        tc = (joint - marginals).mean()
        own = gaussian_log_density(z, mean, logvar).sum(1)
        logs = {"mi": (own - joint).mean(), "tc": tc}
        if self._standard_normal:
            prior = gaussian_log_density(z, z.new_zeros(()), z.new_zeros(())).sum(1)
            logs["dwkl"] = (marginals - prior).mean()
        return Term(self.weight * tc, logs)
