"""Latent groups: heads that read features, and the posteriors they return."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from typing_extensions import Self

from vaezoo.functional import bounded, categorical_kl, full_precision, gaussian_kl, gumbel_softmax
from vaezoo.specs import Specified
from vaezoo.types import Posterior


@dataclass(frozen=True)
class Gaussian:
    """Diagonal Gaussian posterior against a standard normal prior."""

    mean: Tensor
    logvar: Tensor

    @property
    def max_nats(self) -> float:
        """A Gaussian can carry any amount."""
        return math.inf

    def rsample(self) -> Tensor:
        """Mu + sigma · epsilon (Kingma & Welling, 2014), (B, D)."""
        return self.mean + torch.exp(0.5 * self.logvar) * torch.randn_like(self.mean)

    def mode(self) -> Tensor:
        """Mean, (B, D)."""
        return self.mean

    def code(self) -> Tensor:
        """Mean, (B, D)."""
        return self.mean

    def kl(self) -> Tensor:
        """KL of each dimension, (B, D)."""
        return gaussian_kl(self.mean, self.logvar)

    def at(self, rows: Tensor) -> Self:
        """The posteriors of the rows of a mask, or at indices."""
        return replace(self, mean=self.mean[rows], logvar=self.logvar[rows])


@dataclass(frozen=True)
class Concrete:
    """Relaxed categorical posteriors of one or more variables (Dupont, 2018, Sec. 3.2).

    Attributes:
        logits: Logits of each variable, (B, K_i).
        temperature: Temperature of the Gumbel-softmax sample.
        priors: Prior class probabilities of each variable, (K_i,). Defaults to uniform.
    """

    logits: tuple[Tensor, ...]
    temperature: float
    priors: tuple[Tensor, ...] | None = None

    @property
    def probs(self) -> tuple[Tensor, ...]:
        """Class probabilities of each variable, (B, K_i)."""
        return tuple(logits.softmax(-1) for logits in self.logits)

    @property
    def max_nats(self) -> float:
        """Σ log K_i, the most information that the classes can carry."""
        return sum(math.log(logits.shape[-1]) for logits in self.logits)

    def rsample(self) -> Tensor:
        """Relaxed samples, concatenated, (B, Σ K_i)."""
        return torch.cat([gumbel_softmax(logits, self.temperature) for logits in self.logits], dim=1)

    def mode(self) -> Tensor:
        """Most likely classes, one-hot and concatenated, (B, Σ K_i)."""
        return torch.cat([nn.functional.one_hot(p.argmax(-1), p.shape[-1]).to(p) for p in self.logits], dim=1)

    def code(self) -> Tensor:
        """Class probabilities, concatenated, (B, Σ K_i)."""
        return torch.cat(self.probs, dim=1)

    def kl(self) -> Tensor:
        """KL of each variable, from the probabilities, never from the sample, (B, variables)."""
        priors = self.priors or (None,) * len(self.logits)
        return torch.stack([categorical_kl(p, prior) for p, prior in zip(self.probs, priors, strict=True)], dim=1)

    def classes(self) -> Tensor:
        """Most likely class of each variable, (B, variables)."""
        return torch.stack([logits.argmax(-1) for logits in self.logits], dim=1)

    def at(self, rows: Tensor) -> Self:
        """The posteriors of the rows of a mask, or at indices."""
        return replace(self, logits=tuple(logits[rows] for logits in self.logits))


class LatentGroup(Specified):
    """Specification of a latent group: size, head, prior and traversal."""

    size: int
    """Width of a sample, the group's share of the decoder's input."""
    decoded: bool = True
    """Whether the decoder reads it; what it does not read is no part of the representation either."""
    units: int
    """Number of things that can be traversed: dimensions or variables."""
    standard_normal: bool = False
    """Whether the prior is N(0, I)."""
    classes: tuple[int, ...] = ()
    """Number of classes of each variable of a discrete group, whose code is their probabilities."""

    def head(self, features: int) -> nn.Module:
        """Module from features (B, features) to a posterior."""
        raise NotImplementedError

    def prior(self, n: int, like: Tensor) -> Tensor:
        """N samples of the prior, with the device and dtype of `like`, (n, size)."""
        raise NotImplementedError

    def centre(self, like: Tensor) -> Tensor:
        """The centre of the prior, (1, size)."""
        raise NotImplementedError

    def walk(self, code: Tensor, unit: int, values: Tensor) -> Tensor:
        """Copies of a code with one unit varied: (B, size) to (B, S, size)."""
        raise NotImplementedError


class GaussianLatent(LatentGroup):
    """Continuous latents with a standard normal prior.

    Args:
        dim: Number of dimensions.
    """

    standard_normal = True

    def __init__(self, dim: int = 10) -> None:
        if dim < 1:
            raise ValueError(f"dim must be at least 1, not {dim}")
        self.size = self.units = dim

    def head(self, features: int) -> nn.Module:
        """One linear layer gives means and log-variances."""
        return _GaussianHead(features, self.size)

    def prior(self, n: int, like: Tensor) -> Tensor:
        """Standard normal samples, (n, dim)."""
        return torch.randn(n, self.size, device=like.device, dtype=like.dtype)

    def centre(self, like: Tensor) -> Tensor:
        """Zeros, (1, dim)."""
        return like.new_zeros(1, self.size)

    def walk(self, code: Tensor, unit: int, values: Tensor) -> Tensor:
        """Dimension `unit` takes each value in turn, (B, S, dim)."""
        walked = code[:, None].repeat(1, len(values), 1)
        walked[:, :, unit] = values.to(code)
        return walked


class ConcreteLatent(LatentGroup):
    """Discrete latents, relaxed by the Gumbel-softmax.

    Args:
        sizes: Number of classes of each variable.
        temperature: Temperature of the relaxation.
        priors: Prior class probabilities of each variable. Defaults to uniform.
        decoded: Whether the decoder reads these latents.
    """

    def __init__(
        self,
        sizes: list[int],
        temperature: float = 0.67,
        priors: Sequence[Sequence[float]] | None = None,
        decoded: bool = True,
    ) -> None:
        if not sizes or min(sizes) < 2:
            raise ValueError(f"sizes must name at least one variable of 2 classes or more, not {list(sizes)}")
        if temperature <= 0:
            raise ValueError(f"temperature must be above 0, not {temperature}")
        shares = [[1 / k] * k for k in sizes] if priors is None else priors
        if [len(p) for p in shares] != list(sizes) or any(abs(sum(p) - 1) > 1e-3 for p in shares):
            raise ValueError(f"priors must give each of {list(sizes)} classes a share, with a sum of 1, not {priors}")
        self.sizes = self.classes = tuple(sizes)
        self.temperature, self.priors, self.shares, self.decoded = temperature, priors, shares, decoded
        self.size = sum(sizes)
        self.units = len(sizes)

    def head(self, features: int) -> nn.Module:
        """One linear layer gives the logits of all variables."""
        return _ConcreteHead(features, self.sizes, self.temperature, self.priors)

    def prior(self, n: int, like: Tensor) -> Tensor:
        """One-hot samples of the priors, (n, Σ K_i)."""
        draws = [torch.multinomial(like.new_tensor(share), n, replacement=True) for share in self.shares]
        return torch.cat([nn.functional.one_hot(d, k).to(like) for d, k in zip(draws, self.sizes, strict=True)], 1)

    def centre(self, like: Tensor) -> Tensor:
        """The first class of each variable, as classes have no centre, (1, Σ K_i)."""
        return torch.cat([nn.functional.one_hot(torch.tensor([0]), k).to(like) for k in self.sizes], dim=1)

    def choose(self, code: Tensor, variable: int, k: int) -> Tensor:
        """Copy of a code with one variable set to class k, (B, Σ K_i)."""
        if not 0 <= variable < self.units or not 0 <= k < self.sizes[variable]:
            raise ValueError(f"variable {variable} and class {k} must be within the discrete sizes {self.sizes}")
        return self.walk(code, variable, torch.empty(0))[:, k]

    def walk(self, code: Tensor, unit: int, values: Tensor) -> Tensor:
        """Variable `unit` takes each of its classes in turn, (B, K_unit, Σ K_i); ignores the given values."""
        start, width = sum(self.sizes[:unit]), self.sizes[unit]
        walked = code[:, None].repeat(1, width, 1)
        walked[:, :, start : start + width] = torch.eye(width, device=code.device, dtype=code.dtype)
        return walked


class _GaussianHead(nn.Module):
    def __init__(self, features: int, dim: int) -> None:
        super().__init__()
        self.parameters_of = nn.Linear(features, 2 * dim)

    def forward(self, features: Tensor) -> Posterior:
        mean, logvar = full_precision(self.parameters_of(features)).chunk(2, dim=1)
        return Gaussian(mean, bounded(logvar))


class _ConcreteHead(nn.Module):
    prior: Tensor | None

    def __init__(
        self, features: int, sizes: tuple[int, ...], temperature: float, priors: Sequence[Sequence[float]] | None
    ) -> None:
        super().__init__()
        self.sizes, self.temperature = sizes, temperature
        self.logits_of = nn.Linear(features, sum(sizes))
        shares = None if priors is None else torch.tensor([share for prior in priors for share in prior])
        self.register_buffer("prior", shares, persistent=False)  # an argument, not a state

    def forward(self, features: Tensor) -> Posterior:
        logits = full_precision(self.logits_of(features)).split(list(self.sizes), dim=1)
        priors = None if self.prior is None else self.prior.split(list(self.sizes))
        return Concrete(logits, self.temperature, priors)
