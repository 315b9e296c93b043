"""Which latent groups a term reads: one, several concatenated, or the label group."""

from collections.abc import Sequence

import torch
from torch import Tensor

from vaezoo.nn.latents import Gaussian
from vaezoo.regularizers.base import Host, Regularizer, gaussian
from vaezoo.types import Forward

UNIT_RANGE = (0.0, 1.0)


class SpanningTerm(Regularizer):
    """A term over one latent group, or over several concatenated ones.

    Args:
        latent: Latent group, or groups to concatenate. Defaults to all groups with a standard normal prior.
    """

    latents: tuple[str, ...]
    """The groups by name; "z" until a model says which have a standard normal prior."""

    def __init__(self, latent: Sequence[str] | str | None = None) -> None:
        super().__init__()
        self.latent = latent
        self.latents = (latent,) if isinstance(latent, str) else ("z",) if latent is None else tuple(latent)
        if not self.latents:
            raise ValueError(f"latent of {type(self).__name__} names no group: leave it out to read all")

    def attach(self, model: Host) -> None:
        """Select the groups with a standard normal prior, unless groups were named."""
        if self.latent is None:
            self.latents = _standard_normal(model)
        _check(self, self.latents, model)

    def dim_in(self, model: Host, given: int | None) -> int:
        """Total width of the groups.

        Raises:
            ValueError: A different width was given.
        """
        dim = sum(model.latents[name].size for name in self.latents)
        if given not in (None, dim):
            raise ValueError(
                f"dim {given} of {type(self).__name__}: {' and '.join(self.latents)} of the model "
                f"{'has' if len(self.latents) == 1 else 'have'} {dim} dimensions: leave dim out"
            )
        return dim

    def posterior(self, out: Forward) -> Gaussian:
        """The concatenated posterior of the groups."""
        parts = [gaussian(out, name) for name in self.latents]
        return Gaussian(beside([q.mean for q in parts]), beside([q.logvar for q in parts]))

    def sample(self, out: Forward) -> Tensor:
        """The concatenated samples of the groups, (B, D)."""
        return beside([out.sample[name] for name in self.latents])


class LabelTerm(Regularizer):
    """A term over the label latents: the first dimensions of a group, one per label.

    Args:
        latent: The group. Defaults to "y", or to the model's first group with a standard normal prior.
        label_range: Where in their latents labels 0 and 1 lie.
    """

    supervised = True
    signed = ("label_range",)
    others: tuple[str, ...] = ()
    """The model's other groups with a standard normal prior."""

    def __init__(self, latent: str | None = None, label_range: tuple[float, float] = UNIT_RANGE) -> None:
        super().__init__()
        low, high = label_range
        if not low < high:
            raise ValueError(f"label_range must be two rising numbers, not {low:g} and {high:g}")
        self._given, self.latent, self.label_range = latent, latent or "z", (low, high)

    def latents_from(self, labels: Tensor) -> Tensor:
        """Where labels lie in their latents, of the same shape."""
        low, high = self.label_range
        return low + (high - low) * labels

    def attach(self, model: Host) -> None:
        """Select the label group, unless one was named, and the other groups."""
        continuous = _standard_normal(model)
        names = (self._given,) if self._given else ("y",) if "y" in continuous else continuous[:1]
        _check(self, names, model)
        self.latent = names[0]
        self.others = tuple(name for name in continuous if name != self.latent)


def _standard_normal(model: Host) -> tuple[str, ...]:
    return tuple(name for name, group in model.latents.items() if group.standard_normal)


def _check(term: Regularizer, names: Sequence[str], model: Host) -> None:
    if not names:
        raise ValueError(f"{type(term).__name__}: no latent of the model has a standard normal prior: name its latent")
    if unknown := [name for name in names if name not in model.latents]:
        raise ValueError(f"latent {unknown[0]!r} of {type(term).__name__} is not one of {', '.join(model.latents)}")


def beside(parts: list[Tensor]) -> Tensor:
    """Concatenate tensors (B, D_i) to (B, Σ D_i); a single tensor stays unchanged."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def label_width(y: Tensor, z: Tensor) -> int:
    """Number of labels; raises if they do not fit into the latent group."""
    if y.shape[1] > z.shape[1]:
        raise ValueError(
            f"{y.shape[1]} labels do not fit into {z.shape[1]} latent dimensions: give the group more or "
            "choose fewer with data.labelled_factors"
        )
    return y.shape[1]
