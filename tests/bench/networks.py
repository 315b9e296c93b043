"""Every preset network in `fit`, eager and compiled, against a plain loop over the same layers of PyTorch."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tests.bench.timing import beside
from tests.bench.training import BATCH, SHAPE, adam_loop, fit
from vaezoo.callbacks import Compile
from vaezoo.functional import gaussian_kl
from vaezoo.models import BetaVAE
from vaezoo.models.base import VAE
from vaezoo.nn.layers import ChannelsLastConv, ConvTranspose, InstanceNorm
from vaezoo.nn.networks import (
    BurgessNetwork,
    DenseNetwork,
    JointVAENetwork,
    LaRVAENetwork,
    LocatelloNetwork,
    Network,
    PartedVAENetwork,
)

STEPS, BETA = 25, 4.0
NETWORKS: tuple[type[Network], ...] = (
    BurgessNetwork,
    JointVAENetwork,
    LaRVAENetwork,
    PartedVAENetwork,
    LocatelloNetwork,
    DenseNetwork,
)


def plain(module: nn.Module) -> nn.Module:
    """The module with PyTorch's own layers in place of ours; both share their weights."""
    if isinstance(module, InstanceNorm):
        return nn.InstanceNorm2d(module.channels)
    if isinstance(module, ChannelsLastConv | ConvTranspose):
        kind = nn.Conv2d if isinstance(module, ChannelsLastConv) else nn.ConvTranspose2d
        options: dict[str, Any] = {"stride": module.stride, "padding": module.padding}
        if isinstance(module, ConvTranspose):
            options["output_padding"] = module.output_padding
        layer = kind(module.in_channels, module.out_channels, module.kernel_size, **options)
        layer.weight, layer.bias = module.weight, module.bias
        return layer
    if isinstance(module, nn.Sequential):
        return nn.Sequential(*map(plain, module))
    return module


def plain_loss(model: VAE) -> Callable[[Tensor], Tensor]:
    """β-VAE's loss as one would write it by hand, with the weights of a model."""
    encoder, head, decoder = plain(model.encoder), model.heads["z"], plain(model.decoder)

    def objective(x: Tensor) -> Tensor:
        q = head(encoder(x))
        z = q.mean + (q.logvar / 2).exp() * torch.randn_like(q.mean)
        bce = nn.functional.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum") / len(x)
        return bce + BETA * gaussian_kl(q.mean, q.logvar).sum(1).mean()

    return objective


def plain_loop(network: Network, steps: int = STEPS) -> Callable[[], float]:
    """Loss, gradients and Adam, eager, with PyTorch's own layers and images in memory."""
    model = BetaVAE(SHAPE, beta=BETA, network=network).train()
    return adam_loop(plain_loss(model), model.parameters(), steps)


def run(rounds: int = 5, networks: Sequence[type[Network]] = NETWORKS, steps: int = STEPS) -> list[dict[str, object]]:
    """Measure in turns, and return one row a network: images a second beside the plain loop, best and median."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    rows: list[dict[str, object]] = []
    for network in networks:
        torch.compiler.reset()  # what the last network compiled counts towards a limit
        candidates = {
            "plain": plain_loop(network(), steps),
            "eager": fit(network=network(), steps=steps),
            "compiled": fit(Compile(), network=network(), steps=steps),
        }
        found = beside("plain", candidates, lambda candidate: candidate(), rounds)
        row: dict[str, object] = {
            "network": network.__name__,
            "plain, images/s": round(steps * BATCH / found["plain"][0]),
        }
        for name in ("eager", "compiled"):
            _, ratio, median = found[name]
            row |= {f"fit, {name}": round(1 / ratio, 2), f"{name}, median": round(1 / median, 2)}
        rows.append(row)
    return rows
