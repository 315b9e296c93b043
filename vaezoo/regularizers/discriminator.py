"""Total correlation, estimated by a discriminator between q(z) and the product of its marginals."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from vaezoo.distributed import gather, same_on_all_ranks
from vaezoo.regularizers.base import Host
from vaezoo.regularizers.groups import SpanningTerm
from vaezoo.types import Batch, Forward, Term


class DiscriminatedTotalCorrelation(SpanningTerm):
    """γ · TC by the density-ratio trick, plus the discriminator's loss (Kim & Mnih, 2018, Eq. 3, Alg. 2).

    One backward pass trains both players: the VAE's term sees a frozen discriminator, the discriminator's loss sees
    frozen codes. Departs from Alg. 2 in two ways. First, the paper draws two independent batches of m images: the first
    trains the VAE and gives the joint codes, the second gives the permuted codes. Here they are the two halves of one
    batch: a batch of 2m images gives the discriminator exactly the paper's two batches, while the VAE's terms read all
    2m images. Second, both players step at once, so the discriminator sees codes from before the encoder's update, not
    after. This keeps automatic optimization, gradient accumulation, loss scaling and resuming.

    Args:
        latent: Latent group, or groups to concatenate. Defaults to all groups with a standard normal prior.
        gamma: Weight of the total correlation.
        width: Units of each hidden layer of the discriminator.
        depth: Number of its hidden layers.
        lr: Adam's learning rate for the discriminator.
        betas: Adam's betas for the discriminator.
        dim: Number of latent dimensions. Defaults to the model's.
    """

    def __init__(
        self,
        latent: Sequence[str] | str | None = None,
        gamma: float = 35.0,
        width: int = 1000,
        depth: int = 6,
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.5, 0.9),
        dim: int | None = None,
    ) -> None:
        super().__init__(latent)
        if min(1 if dim is None else dim, width, depth) < 1:
            raise ValueError(f"dim, width and depth must be at least 1, not {dim}, {width} and {depth}")
        self.gamma, self.lr, self.betas, self.dim = gamma, lr, (betas[0], betas[1]), dim
        self._hidden = [width] * depth
        self.discriminator = nn.Sequential() if dim is None else _classifier(dim, self._hidden)

    def attach(self, model: Host) -> None:
        """Build the discriminator for the model's latents."""
        super().attach(model)
        dim = self.dim_in(model, self.dim)
        if not len(self.discriminator):
            self.discriminator, self.dim = _classifier(dim, self._hidden), dim

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """γ · TC, with gradients for the VAE only, plus the discriminator's loss, with gradients for it only."""
        if not len(self.discriminator):
            raise ValueError("a discriminator outside a model needs dim, the number of latent dimensions")
        z = gather(self.sample(out))
        frozen = {name: parameter.detach() for name, parameter in self.discriminator.named_parameters()}
        logits = functional_call(self.discriminator, frozen, (z,))
        tc = (logits[:, 0] - logits[:, 1]).mean()
        # A last validation batch may hold a single image, which has no halves.
        joint, other = z.detach().tensor_split(2) if len(z) > 1 else (z.detach(), z.detach())
        loss, accuracy = self._discriminate(joint, permute_dims(other))
        return Term(self.gamma * tc + loss, {"tc": tc, "discriminator": loss, "accuracy": accuracy})

    def param_group(self) -> dict[str, Any]:
        """The paper's Adam options for the discriminator."""
        return {"lr": self.lr, "betas": self.betas}

    def _discriminate(self, joint: Tensor, permuted: Tensor) -> tuple[Tensor, Tensor]:
        # One pass: the weights, five million numbers, are read once for both and get one gradient.
        real, fake = self.discriminator(torch.cat([joint, permuted])).tensor_split([len(joint)])
        zeros = torch.zeros(len(real), dtype=torch.long, device=real.device)
        ones = torch.ones(len(fake), dtype=torch.long, device=fake.device)
        loss = 0.5 * (F.cross_entropy(real, zeros) + F.cross_entropy(fake, ones))
        right = torch.cat([real[:, 0] > real[:, 1], fake[:, 1] > fake[:, 0]])
        return loss, right.float().mean()


def _classifier(dim: int, hidden: list[int]) -> nn.Sequential:
    """Two logits, "joint" and "permuted", from latents (B, dim)."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise((dim, *hidden)):
        layers += [nn.Linear(inputs, outputs), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Linear(hidden[-1], 2))


def permute_dims(z: Tensor) -> Tensor:
    """Permute each dimension over the batch independently (Kim & Mnih, 2018, Alg. 1), alike on all ranks."""
    order = same_on_all_ranks(torch.rand_like(z)).argsort(0)
    return z.gather(0, order)
