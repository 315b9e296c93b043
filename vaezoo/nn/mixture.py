"""Latents that depend on discrete latents, with a learnable Gaussian mixture prior."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from typing_extensions import Self

from vaezoo.functional import bounded, full_precision, gaussian_kl_between, gaussian_log_density
from vaezoo.nn.latents import Gaussian, GaussianLatent


@dataclass(frozen=True)
class MixtureGaussian(Gaussian):
    """Gaussian posterior q(u|c, x) against a prior p(u|c) with one component per class (Hajimiri et al., 2021, Eq. 2).

    Attributes:
        weights: q(c_k|x) of each discrete variable, (B, K_k).
        components: p(u_k|c_k) of each discrete variable, one row per class, (K_k, D).
    """

    weights: tuple[Tensor, ...]
    components: tuple[Gaussian, ...]

    def kl(self) -> Tensor:
        """Σ_i q(c_k=i|x) · KL(q(u_k|c, x) || p(u_k|i)) of each dimension, (B, variables · D)."""
        dim = self.components[0].mean.shape[1]
        nats = []
        for weights, p, mean, logvar in zip(
            self.weights, self.components, self.mean.split(dim, 1), self.logvar.split(dim, 1), strict=True
        ):
            by_class = gaussian_kl_between(mean[:, None], logvar[:, None], p.mean, p.logvar)  # (B, K_k, D)
            nats.append((weights[..., None] * by_class).sum(1))
        return torch.cat(nats, dim=1)

    def at(self, rows: Tensor) -> Self:
        """The posteriors of the rows of a mask, or at indices."""
        return replace(super().at(rows), weights=tuple(weights[rows] for weights in self.weights))


class MixtureLatent(GaussianLatent):
    """Class-related latents u: `dim` dimensions per discrete variable, each dependent on that variable only.

    Args:
        sizes: Number of classes of each discrete variable.
        dim: Dimensions of u for each of them.
    """

    standard_normal = False

    def __init__(self, sizes: Sequence[int], dim: int = 1) -> None:
        super().__init__(dim)
        self.sizes, self.dim = tuple(sizes), dim
        self.size = self.units = dim * len(self.sizes)

    def head(self, features: int) -> nn.Module:
        """Attention and the learnt mixture."""
        return AttendedHead(features, self.sizes, self.dim)

    def prior(self, n: int, like: Tensor) -> Tensor:
        """Not available: the mixture is learnt, so only the head can sample it."""
        raise NotImplementedError("the prior of u is learnt; draw from the head's components")

    def walk(self, code: Tensor, unit: int, values: Tensor) -> Tensor:
        """Shift dimension `unit` from its current value by each value, as classes may lie anywhere, (B, S, D)."""
        walked = code[:, None].repeat(1, len(values), 1)
        walked[:, :, unit] += values.to(code)
        return walked


class AttendedHead(nn.Module):
    """q(u_k|c_k, x) from features h and a sample of c_k, by attention in latent space (Hajimiri et al., 2021, Fig. 2).

    Attention a = sigmoid(sharpness · (W c_k + b)); a linear layer reads mean and log-variance from h · a.

    Args:
        features: Width of h.
        sizes: Number of classes of each discrete variable.
        dim: Dimensions of u for each of them.
    """

    def __init__(self, features: int, sizes: Sequence[int], dim: int) -> None:
        super().__init__()
        self.sizes, self.dim = list(sizes), dim
        self.attention = nn.ModuleList(nn.Linear(k, features) for k in sizes)
        self.parameters_of = nn.ModuleList(nn.Linear(features, 2 * dim) for _ in sizes)
        self.component_mean = nn.ParameterList(torch.randn(k, dim) for k in sizes)
        self.component_spread = nn.ParameterList(torch.randn(k, dim) for k in sizes)

    def components(self) -> tuple[Gaussian, ...]:
        """p(u_k|c_k) of each discrete variable. Log-variances stay within (−3, 1), as in the released code."""
        pairs = zip(self.component_mean, self.component_spread, strict=True)
        return tuple(Gaussian(mean, 2 * torch.tanh(spread) - 1) for mean, spread in pairs)

    def draw(self, c: Tensor) -> Tensor:
        """Sample p(u|c) at the concatenated one-hot classes of all variables, (n, Σ K_k) to (n, variables · D)."""
        pairs = zip(c.split(self.sizes, 1), self.components(), strict=True)
        return torch.cat([Gaussian(hot @ p.mean, hot @ p.logvar).rsample() for hot, p in pairs], dim=1)

    def walk(self, u: Tensor, variable: int) -> Tensor:
        """Copies of u with one variable's dimensions at the mean of each class, (B, K_k, variables · D)."""
        mean = self.components()[variable].mean
        walked = u[:, None].repeat(1, len(mean), 1)
        walked[:, :, variable * self.dim : (variable + 1) * self.dim] = mean
        return walked

    def curves(self, unit: int, points: Tensor) -> Tensor:
        """Density of one dimension of u for each class of its variable at points (S,), (K_k, S)."""
        variable, dimension = divmod(unit, self.dim)
        p = self.components()[variable]
        mean, logvar = p.mean[:, dimension, None], p.logvar[:, dimension, None]
        return gaussian_log_density(points.to(mean), mean, logvar).exp()

    def forward(self, features: Tensor, c: Tensor, weights: tuple[Tensor, ...], sharpness: Tensor) -> MixtureGaussian:
        """Posterior at a sample of all classes, concatenated, (B, Σ K_k); weighted later by their probabilities."""
        means, logvars = [], []
        for c_k, attention, parameters_of in zip(
            c.split(self.sizes, 1), self.attention, self.parameters_of, strict=True
        ):
            attended = features * torch.sigmoid(sharpness * attention(c_k))
            mean, logvar = full_precision(parameters_of(attended)).chunk(2, dim=1)
            means.append(mean)
            logvars.append(bounded(logvar))
        return MixtureGaussian(torch.cat(means, 1), torch.cat(logvars, 1), weights, self.components())
