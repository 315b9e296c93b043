"""Pure maths of the losses: no state, no Lightning.

Convention: sum over latent or pixel dimensions, mean over the batch, in nats per example.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Likelihood = Literal["bernoulli", "gaussian", "laplace", "l1"]
Estimator = Literal["mws", "mss", "batch"]

# Added to probabilities inside a logarithm, as in JointVAE's released code: keeps gradients finite at one-hot.
_EPS = 1e-12

# With AVX-512, log1p and so cross-entropy are several times slower until log1p has met special values once: probably
# since masked loads of their constants are slow from a page that nobody has read, and ordinary numbers never read it.
torch.log1p(torch.tensor([-0.0, -1.0, math.inf, math.nan] * 16, dtype=torch.float32, device="cpu"))


def full_precision(x: Tensor) -> Tensor:
    """Cast half precision to float32 for the loss maths; float32 and float64 stay unchanged."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


LOGVAR_RANGE = (-30.0, 10.0)
"""Log-variances of posteriors that are told apart.

At the lower bound a standard deviation is 3e-7, near the rounding of a float32 mean of 1; at the upper one a unit is
148 times as wide as its prior and costs 11,000 nats. Models trained here lie between −10 and 1. In every term of the
zoo exponentials, and squares of their gradients, stay within float32 there; without bounds e^89 is infinite.
"""


class _Bounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logvar: Tensor) -> Tensor:
        ctx.set_materialize_grads(False)  # what gets no gradient passes none on
        return logvar.clamp(*LOGVAR_RANGE)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0]


def bounded(logvar: Tensor) -> Tensor:
    """Bound log-variances to `LOGVAR_RANGE`; values inside, and their gradients, are unchanged to the bit.

    Values outside take the nearest bound, and their gradient passes straight through: beyond the bounds the loss is
    linear. A clamp would have zero gradient there, and no way back.
    """
    values: Tensor = _Bounded.apply(logvar)
    return values


def gaussian_kl(mu: Tensor, logvar: Tensor) -> Tensor:
    """KL(N(mu, diag exp(logvar)) || N(0, I)) per dimension, (B, D)."""
    return 0.5 * (mu.square() + logvar.exp() - logvar - 1)


def gaussian_kl_between(mu_q: Tensor, logvar_q: Tensor, mu_p: Tensor, logvar_p: Tensor) -> Tensor:
    """KL between two diagonal Gaussians per dimension, (B, D)."""
    ratio = logvar_q - logvar_p
    return 0.5 * (ratio.exp() + (mu_q - mu_p).square() * (-logvar_p).exp() - ratio - 1)


def categorical_kl(probs: Tensor, prior: Tensor | None = None) -> Tensor:
    """KL(Cat(probs) || Cat(prior)), (B,). The prior defaults to uniform."""
    if prior is None:
        return math.log(probs.shape[-1]) - entropy(probs)
    return -entropy(probs) - (probs * (prior + _EPS).log()).sum(-1)


def entropy(probs: Tensor) -> Tensor:
    """Entropy of categorical distributions, (B,)."""
    return -(probs * (probs + _EPS).log()).sum(-1)


def mutual_information(p: Tensor, q: Tensor) -> Tensor:
    """I(c; c') of two class variables with the symmetrised mean of pᵢqᵢᵀ as their joint distribution, a scalar.

    Args:
        p: Class probabilities of images, (B, K).
        q: Class probabilities of other views of the same images (Ji et al., 2019, Eq. 3), (B, K).
    """
    joint = p.mT @ q / len(p)
    joint = (joint + joint.mT) / 2
    return 2 * entropy(joint.sum(1)) - entropy(joint.flatten())


def gumbel_softmax(logits: Tensor, temperature: float, hard: bool = False) -> Tensor:
    """Sample the Concrete distribution (Jang et al., 2017; Maddison et al., 2017), (B, K).

    Args:
        logits: Unnormalised log-probabilities, (B, K).
        temperature: Positive; lower values are closer to one-hot.
        hard: Return one-hot samples with the gradient of the relaxed ones (straight-through).
    """
    return F.gumbel_softmax(logits, tau=temperature, hard=hard, dim=-1)


def gaussian_log_density(z: Tensor, mu: Tensor, logvar: Tensor) -> Tensor:
    """Log N(z; mu, exp(logvar)) per dimension; arguments broadcast."""
    return -0.5 * (math.log(2 * math.pi) + logvar + (z - mu).square() * (-logvar).exp())


def aggregate_log_densities(
    z: Tensor, mu: Tensor, logvar: Tensor, dataset_size: int | None = None, estimator: Estimator = "mws"
) -> tuple[Tensor, Tensor]:
    """Estimate log q(z) and log Π_l q(z_l) of the aggregate posterior (Chen et al., 2018, Sec. 4.1 and App. C).

    Args:
        z: Samples, row j drawn from the posterior of row j, (B, D).
        mu: Posterior means, (B, D).
        logvar: Posterior log-variances, (B, D).
        dataset_size: Number N of training examples. Defaults to the batch size.
        estimator: "mws", minibatch-weighted sampling, divides by N·B; "mss", minibatch-stratified sampling, weights the
            sample's own posterior by 1/N; "batch" treats the batch as the whole dataset.

    Returns:
        log q(z_j) and Σ_l log q(z_jl), (B,) each.
    """
    log_weights = _log_weights(z, z.shape[0] if dataset_size is None else dataset_size, estimator)
    pairwise = gaussian_log_density(z[:, None], mu[None], logvar[None])  # (B samples, B posteriors, D)
    joint = (pairwise.sum(-1) + log_weights).logsumexp(1)
    marginals = (pairwise + log_weights[..., None]).logsumexp(1)
    return joint, marginals.sum(-1)


def _log_weights(z: Tensor, size: int, estimator: Estimator) -> Tensor:
    """Log-weight of posterior i at sample j, per estimator, (B, B)."""
    batch = z.shape[0]
    if estimator == "mss" and batch > 1:
        others = batch - 1
        weights = z.new_full((batch, batch), 1 / others)
        # Max: a data set smaller than the batch is a slip that must not turn into the log of a negative number.
        weights.diagonal(1).fill_(max(size - others, 0) / (size * others))
        weights[-1, 0] = weights[0, 1]
        weights.fill_diagonal_(1 / size)
        return weights.log()
    # The logarithm of a tensor: one of a Python number would be compiled anew for every size of the batch.
    return -z.new_ones(batch, batch).mul(batch * (size if estimator == "mws" else 1)).log()


def covariance(x: Tensor) -> Tensor:
    """Biased covariance of the rows of x, E[xxᵀ] − E[x]E[x]ᵀ, (D, D)."""
    centred = x - x.mean(0)
    return centred.mT @ centred / x.shape[0]


def bhattacharyya(mu1: Tensor, logvar1: Tensor, mu2: Tensor, logvar2: Tensor) -> Tensor:
    """Bhattacharyya coefficient ∫√(pq) of diagonal Gaussians over the last dimension: 1 if equal, 0 if far apart."""
    log_sum = torch.logaddexp(logvar1, logvar2)  # log(σ1² + σ2²)
    distance = 0.25 * (mu1 - mu2).square() * (-log_sum).exp()
    distance = distance + 0.5 * (log_sum - math.log(2) - 0.5 * (logvar1 + logvar2))
    return (-distance.sum(-1)).exp()


def observed_labels(y: Tensor, sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Separate observed from unobserved labels.

    Args:
        y: Concatenated one-hot labels, (B, Σ sizes), or class indices, (B, labels). A label that contains NaN is
            unobserved; (B, 0) means that all are.
        sizes: Number of classes of each label.

    Returns:
        One-hot labels, zeros if unobserved, (B, Σ sizes); and a mask of observed labels, bool (B, labels).
    """
    columns = sum(sizes)
    if y.ndim != 2 or y.shape[1] not in (columns, len(sizes), 0):
        forms = f"(B, {columns}), one-hot, or (B, {len(sizes)}), class indices"
        raise ValueError(f"labels of {list(sizes)} classes are {forms}, not {tuple(y.shape)}")
    if y.shape[1] < columns:
        indices = y if y.shape[1] else y.new_full((len(y), len(sizes)), torch.nan)
        pairs = zip(indices.split(1, dim=1), sizes, strict=True)
        hot = [torch.where(i.isnan(), torch.nan, (i == torch.arange(k, device=y.device)).to(y)) for i, k in pairs]
        y = torch.cat(hot, dim=1)
    labels = y.split(list(sizes), dim=1)
    observed = [~label.isnan().any(1, keepdim=True) for label in labels]
    known = [torch.where(there, label, 0.0) for there, label in zip(observed, labels, strict=True)]
    return torch.cat(known, dim=1), torch.cat(observed, dim=1)


def reconstruction(logits: Tensor, x: Tensor, likelihood: Likelihood = "bernoulli", variance: float = 1.0) -> Tensor:
    """Negative log-likelihood −log p(x|z) of each image, summed over channels and pixels, (B,).

    Args:
        logits: Decoder output, (B, C, H, W). Its sigmoid is the mean of every distribution.
        x: Images, (B, C, H, W).
        likelihood: "bernoulli"; "gaussian"; "laplace" of unit scale; "l1", the same without its constant log 2 per
            value: the sum of `|x − x̂|`.
        variance: σ² of the Gaussian; ignored by the others.
    """
    if likelihood == "bernoulli":
        nll = F.binary_cross_entropy_with_logits(logits, x, reduction="none")
    elif likelihood == "gaussian":
        nll = 0.5 / variance * (x - logits.sigmoid()).square() + 0.5 * math.log(2 * math.pi * variance)
    elif likelihood == "laplace":
        nll = (x - logits.sigmoid()).abs() + math.log(2)
    elif likelihood == "l1":
        nll = (x - logits.sigmoid()).abs()
    else:
        raise ValueError(f"likelihood must be 'bernoulli', 'gaussian', 'laplace' or 'l1', not {likelihood!r}")
    return nll.sum((1, 2, 3))  # not flattened: fused in any memory format


def label_cross_entropy(logits: Sequence[Tensor], labels: Tensor) -> Tensor:
    """Cross-entropy of class labels, summed over variables, (B,). NaN labels are ignored.

    Args:
        logits: Logits of each variable, (B, K_i).
        labels: Class index of each variable, (B, variables).
    """
    targets = torch.where(labels.isnan(), -1, labels).long()
    columns = zip(logits, targets.unbind(1), strict=True)
    return torch.stack([F.cross_entropy(x, y, ignore_index=-1, reduction="none") for x, y in columns]).sum(0)


def check_classes(labels: Tensor, sizes: Sequence[int], option: str) -> None:
    """Raise unless labels are class indices. Syncs with the device.

    Args:
        labels: One column per variable, (B, variables); NaN if unknown.
        sizes: Number of classes of each variable.
        option: Name of the argument that sets these numbers, for the error.
    """
    if labels.shape[1] != len(sizes):
        raise ValueError(f"labels have {labels.shape[1]} columns for {len(sizes)} variables: set data.labelled_factors")
    classes = (labels == labels.round()) & (labels >= 0) & (labels < labels.new_tensor(sizes))
    if bool((labels.isnan() | classes).all()):
        return
    known = labels.nan_to_num(0)
    if bool(((known == known.round()) & (known >= 0)).all()):
        most = [max(size, int(top) + 1) for size, top in zip(sizes, known.amax(0).tolist(), strict=True)]
        raise ValueError(
            f"labels count from 0 and need {most} classes, but the model has {list(sizes)}: raise {option} to {most}"
        )
    raise ValueError(f"labels must be class indices below {tuple(sizes)}: set data.label_form to index")


def label_accuracy(classes: Tensor, labels: Tensor) -> Tensor:
    """Accuracy over known (non-NaN) labels; labels and classes are (B, variables). Returns a scalar."""
    known = ~labels.isnan()
    return (classes == labels).sum() / known.sum().clamp(min=1)
