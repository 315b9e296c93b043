"""Drawing with PartedVAE: prior curves, class samples, attribute transfer and class traversals."""

from collections.abc import Mapping

import torch
from torch import Tensor

from vaezoo.nn.autoencoder import Autoencoder
from vaezoo.nn.latents import ConcreteLatent
from vaezoo.nn.mixture import AttendedHead


class PartedDrawing(Autoencoder):
    """An autoencoder with class-independent z, class-related u, classes c and a learnt mixture p(u|c)."""

    @property
    def classes(self) -> ConcreteLatent:
        """The discrete variables c."""
        group = self.latents["c"]
        assert isinstance(group, ConcreteLatent)
        return group

    @property
    def mixture(self) -> AttendedHead:
        """The head of u; it holds p(u|c)."""
        head = self.heads["u"]
        assert isinstance(head, AttendedHead)
        return head

    def draw(self, n: int) -> dict[str, Tensor]:
        """Sample latents from the prior, (n, D) per group: first classes, then u from their components."""
        like = next(self.decoder.parameters())
        c = self.classes.prior(n, like)
        return {"z": self.latents["z"].prior(n, like), "u": self.mixture.draw(c), "c": c}

    def centre(self) -> dict[str, Tensor]:
        """The middle of the prior: the first classes, and u at the means of their components."""
        centre = super().centre()
        u = [component.mean[:1] for component in self.mixture.components()]
        return centre | {"u": torch.cat(u, dim=1)}

    @torch.no_grad()
    def sample_class(self, n: int, k: int, variable: int = 0) -> Tensor:
        """Images of class k of one discrete variable; the rest is sampled from the prior, (n, C, H, W)."""
        sample = self.draw(n)
        c = self.classes.choose(sample["c"], variable, k)
        return self.decode(sample | {"u": self.mixture.draw(c)}).sigmoid()

    @torch.no_grad()
    def transfer(self, x: Tensor, donors: Tensor) -> Tensor:
        """Images x with the class-independent attributes of the donors (Fig. 5), (B, donors, C, H, W)."""
        u, z = self.encode(x)["u"].mode(), self.encode(donors)["z"].mode()
        pairs = {"u": u.repeat_interleave(len(z), 0), "z": z.repeat(len(u), 1)}
        return self.decode(pairs).sigmoid().reshape(len(u), len(z), *self.image_shape)

    @torch.no_grad()
    def prior_curves(self, unit: int, points: Tensor) -> Tensor:
        """p(c=i) · p(u_unit|c=i) of each class at points (S,) (Fig. 7 and 10); the sum is the mixture, (K, S)."""
        curves = self.mixture.curves(unit, points)
        return curves.new_tensor(self.classes.shares[unit // self.mixture.dim])[:, None] * curves

    def walkable(self) -> list[str]:
        """All groups: the decoder does not read classes, but they move u."""
        return list(self.latents)

    def walk(self, codes: Mapping[str, Tensor], name: str, unit: int, values: Tensor) -> tuple[str, Tensor]:
        """Traverse a class by moving its u to the mean of each component in turn."""
        if name == "c":
            return "u", self.mixture.walk(codes["u"], unit)
        return super().walk(codes, name, unit, values)
