"""Scores that need no factors: dependence between latents, and active latents."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from vaezoo.metrics.functional.mutual_information import binned, information_table
from vaezoo.metrics.functional.pool import Array, Scores, as_codes, first_columns, varying


def covariance_blocks(codes: ArrayLike, discrete: Sequence[int]) -> tuple[Array, list[Array]]:
    """Return the covariance of the codes that vary, and its diagonal block for every latent."""
    z = as_codes(codes)
    starts = first_columns(z, discrete)
    keep = varying(z)
    # Probabilities sum to 1: without the last one they carry the same information and are not collinear.
    keep[np.append(starts[1:], z.shape[1])[np.diff(starts, append=z.shape[1]) > 1] - 1] = False
    latent = np.searchsorted(starts, np.flatnonzero(keep), side="right")
    if len(z) <= len(latent):
        raise ValueError(f"codes holds {len(z)} rows for {len(latent)} latents: a covariance needs more rows")
    cov = np.atleast_2d(np.cov(z[:, keep], rowvar=False)) if keep.any() else np.empty((0, 0))
    return cov, [cov[np.ix_(latent == i, latent == i)] for i in np.unique(latent)]


def gaussian_total_correlation(codes: ArrayLike, *, discrete: Sequence[int] = ()) -> Scores:
    """Total correlation of a Gaussian with the covariance of the codes, in nats (Locatello et al., 2019).

    Constant codes are ignored; codes that determine one another give infinity.

    Args:
        codes: Codes (N, D).
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """
    cov, blocks = covariance_blocks(codes, discrete)
    deviation = np.sqrt(np.diag(cov))
    size = np.linalg.eigvalsh(cov / np.outer(deviation, deviation)) if len(cov) else np.ones(1)
    if size.min() <= 1e-12 * size.max():  # what rounding leaves of a linear dependence
        return {"gaussian_total_correlation": float("inf")}
    logs = sum(float(np.linalg.slogdet(block)[1]) for block in blocks)
    return {"gaussian_total_correlation": (logs - float(np.linalg.slogdet(cov)[1])) / 2}


def gaussian_wasserstein_correlation(codes: ArrayLike, *, discrete: Sequence[int] = ()) -> Scores:
    """Squared 2-Wasserstein distance of that Gaussian from one with independent latents; raw and per variance.

    Args:
        codes: Codes (N, D).
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """
    cov, blocks = covariance_blocks(codes, discrete)
    if not len(cov):
        return {"gaussian_wasserstein_correlation": 0.0, "gaussian_wasserstein_correlation_normalised": 0.0}
    root = block_diag(*map(_square_root, blocks))
    cross = np.sqrt(np.linalg.eigvalsh(root @ cov @ root).clip(min=0)).sum()
    total = float(np.trace(cov))
    distance = max(0.0, 2 * total - 2 * float(cross))
    return {
        "gaussian_wasserstein_correlation": distance,
        "gaussian_wasserstein_correlation_normalised": distance / total,
    }


def _square_root(matrix: Array) -> Array:
    size, basis = np.linalg.eigh(matrix)
    return np.asarray((basis * np.sqrt(size.clip(min=0))) @ basis.T)


def code_mutual_information(codes: ArrayLike, *, num_bins: int = 20, discrete: Sequence[int] = ()) -> Scores:
    """Mean mutual information of two different latents, in nats, from binned codes.

    Args:
        codes: Codes (N, D).
        num_bins: Bins of a continuous latent.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """
    bins = binned(as_codes(codes, rows=num_bins), num_bins, discrete)
    latents = bins.shape[1]
    table = information_table(bins, bins)
    between = table.sum() - np.trace(table)
    return {f"code_mutual_information_{num_bins}": float(between / max(1, latents * (latents - 1)))}


def active_units(codes: ArrayLike, *, threshold: float = 0.01, discrete: Sequence[int] = ()) -> Scores:
    """Count the latents whose codes have a variance above the threshold (Burda et al., 2016).

    Args:
        codes: Posterior means (N, D).
        threshold: Least variance of an active latent.
        discrete: Class counts of the discrete latents, whose probabilities are the last columns of the codes.
    """
    z = as_codes(codes)
    spread = np.add.reduceat(z.var(axis=0), first_columns(z, discrete))
    return {"active_units": int((spread > threshold).sum())}


def kl_per_unit(kl: ArrayLike, *, threshold: float = 0.01) -> Scores:
    """Average the KL divergence of every latent from its prior over the examples.

    Args:
        kl: Divergence (N, D) of each example and latent, in nats.
        threshold: Least mean divergence of a latent that counts as active.
    """
    mean = as_codes(kl, 1, "kl").mean(axis=0)
    units = {f"kl_unit_{d}": float(nats) for d, nats in enumerate(mean)}
    return {"kl": float(mean.sum()), "kl_active_units": int((mean > threshold).sum()), **units}
