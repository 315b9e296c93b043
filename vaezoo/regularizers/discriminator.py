"""Total correlation, estimated by a discriminator between q(z) and the product of its marginals."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vaezoo.distributed import gather, same_on_all_ranks
from vaezoo.regularizers.base import Host
from vaezoo.regularizers.groups import SpanningTerm
from vaezoo.types import Batch, Forward, Term

_SLOPE = 0.2  # of the discriminator's leaky rectifiers


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
        half = -(-len(z) // 2)
        # A last validation batch may hold a single image, which has no halves.
        permuted = permute_dims(z.detach()[half:] if len(z) > 1 else z.detach())
        ratios, seen = _Ratios.apply(z, permuted, half, *self.discriminator.parameters())
        fake, real = seen.tensor_split([len(permuted)])
        tc = ratios.mean()
        loss = -0.5 * (F.logsigmoid(real).mean() + F.logsigmoid(-fake).mean())
        accuracy = torch.cat([real > 0, fake < 0]).float().mean()
        return Term(self.gamma * tc + loss, {"tc": tc, "discriminator": loss, "accuracy": accuracy})

    def param_group(self) -> dict[str, Any]:
        """The paper's Adam options for the discriminator."""
        return {"lr": self.lr, "betas": self.betas}


class _Ratios(torch.autograd.Function):
    """log D(z)/(1 − D(z)), the difference of the two logits, for both players by one pass to and fro.

    Whichever loss reads it, a row's gradient at the two logits is a multiple of (1, −1). So (1, −1) goes back through
    the layers once a row. Gradients of the first output reach the codes alone, those of the second the weights alone.

    Returns:
        Ratios of z, (B,), for the VAE; of the permuted codes and the first `joint` rows of z for the discriminator.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, permuted: Tensor, joint: int, *parameters: Tensor) -> tuple[Tensor, Tensor]:
        weights, inputs = parameters[::2], [torch.cat([permuted, z])]
        for weight, bias in zip(weights[:-1], parameters[1::2], strict=False):
            inputs.append(F.leaky_relu_(F.linear(inputs[-1], weight, bias), _SLOPE))
        logits = F.linear(inputs[-1], *parameters[-2:])
        ratios = logits[:, 0] - logits[:, 1]
        ctx.save_for_backward(*inputs, *weights)
        ctx.set_materialize_grads(False)  # a player whose loss is not asked for gets None
        ctx.permuted, ctx.seen = len(permuted), len(permuted) + joint
        return ratios[ctx.permuted :].clone(), ratios[: ctx.seen].clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        layers = len(ctx.saved_tensors) // 2
        inputs, weights = ctx.saved_tensors[:layers], ctx.saved_tensors[layers:]
        to_codes, to_weights = grads
        found: list[Tensor | None] = []
        one = inputs[0].new_ones(len(inputs[0]))
        back = torch.stack([one, -one], dim=1)
        for i in reversed(range(layers)):
            if to_weights is not None:
                own = to_weights[:, None] * back[: ctx.seen]
                found = [own.mT @ inputs[i][: ctx.seen], own.sum(0), *found]
            back = back @ weights[i]
            if i:
                back = torch.where(inputs[i] > 0, back, _SLOPE * back)  # rectified, an input keeps its sign
        codes = None if to_codes is None else to_codes[:, None] * back[ctx.permuted :]
        return codes, None, None, *(found or [None] * 2 * layers)


def _classifier(dim: int, hidden: list[int]) -> nn.Sequential:
    """Two logits, "joint" and "permuted", from latents (B, dim)."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise((dim, *hidden)):
        layers += [nn.Linear(inputs, outputs), nn.LeakyReLU(_SLOPE)]
    return nn.Sequential(*layers, nn.Linear(hidden[-1], 2))


def permute_dims(z: Tensor) -> Tensor:
    """Permute each dimension over the batch independently (Kim & Mnih, 2018, Alg. 1), alike on all ranks."""
    order = same_on_all_ranks(torch.rand_like(z)).argsort(0)
    return z.gather(0, order)
