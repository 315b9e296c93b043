"""Matrices of codes and factors: covariance, mutual information, importance."""

from collections.abc import Mapping

import numpy as np
import torch
from lightning.pytorch import Trainer
from torch import Tensor

from vaezoo.functional import covariance
from vaezoo.metrics.encoded import Encoded, discrete_sizes
from vaezoo.metrics.functional.dci import importance_table
from vaezoo.metrics.functional.mutual_information import binned, entropy, information_table
from vaezoo.metrics.functional.pool import as_labels
from vaezoo.metrics.protocols import EvaluationData
from vaezoo.metrics.reading import as_indices
from vaezoo.models.base import VAE
from vaezoo.pictures.callback import Pictures, caption
from vaezoo.pictures.picture import Picture
from vaezoo.pictures.plots import matrix
from vaezoo.types import Batch

BINS = 20


class SaveCodeMatrices(Pictures):
    """Draws the covariance of the codes, and the information of each latent about each factor.

    `covariance` is the matrix that DIP-VAE pulls towards the identity. `information` is the mutual information divided
    by the factor's entropy; MIG compares the two largest entries of each column. `importance` is the matrix behind DCI.

    Args:
        pool: Number of images to encode.
    """

    def __init__(self, pool: int = 2000) -> None:
        super().__init__(images=1)
        self.pool = pool

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> Mapping[str, Picture]:
        """Three pictures, the first alone for data without factors; none without a datamodule."""
        data = getattr(trainer, "datamodule", None)
        if not isinstance(data, EvaluationData):
            return {}
        return code_matrices(model, data, self.pool, 0, caption(trainer, model))


@torch.no_grad()
def code_matrices(model: VAE, data: EvaluationData, pool: int, seed: int, title: str) -> dict[str, Picture]:
    """Pictures of the codes of as many images: `covariance`, and of their factors, if any, two more."""
    parts = [
        (Encoded(model, part, factors, data).codes.cpu(), as_indices(factors).cpu())
        for part, factors in data.evaluation_batches(pool, data.evaluation_split, seed, model.device)
    ]
    codes, factors = (torch.cat(columns) for columns in zip(*parts, strict=True))
    return matrices(codes, factors, data.factor_names, discrete_sizes(model), title)


def matrices(
    codes: Tensor, factors: Tensor, names: tuple[str, ...], discrete: tuple[int, ...], title: str
) -> dict[str, Picture]:
    """Covariance (D, D), mutual information and importance (L, K) as pictures.

    Args:
        codes: Codes, those of discrete latents last, (N, D).
        factors: Factor indices, (N, K); images of which one is -1, not known, tell of the covariance alone.
        names: Names of the factors.
        discrete: Class counts of the discrete latents.
        title: First words of the titles.
    """
    continuous = codes.shape[1] - sum(discrete)
    units = [*(f"z{d}" for d in range(continuous)), *(f"c{v}" for v in range(len(discrete)))]
    columns = [*units[:continuous], *(f"c{v}={k}" for v, size in enumerate(discrete) for k in range(size))]
    spread = matrix(covariance(codes), columns, columns, f"{title}\ncovariance of the codes", signed=True)
    known = (factors >= 0).all(1)
    codes, factors = codes[known], factors[known]
    varies = (factors != factors[:1]).any(0)
    if not varies.any():
        return {"covariance": spread}
    table, chosen = codes.double().numpy(), factors[:, varies].double().numpy()
    shown = [name for name, there in zip(names, varies.tolist(), strict=True) if there]
    labels = as_labels(chosen)
    nats = np.array([entropy(label) for label in labels.T])
    information = torch.from_numpy(information_table(binned(table, BINS, discrete), labels) / nats)
    importance = torch.from_numpy(importance_table(table, chosen, discrete=discrete))
    return {
        "covariance": spread,
        "information": matrix(information, units, shown, f"{title}\nmutual information / entropy"),
        "importance": matrix(importance, units, shown, f"{title}\nimportance (DCI)"),
    }
