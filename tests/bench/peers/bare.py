"""One training by a loop written by hand, with the images in memory and fused Adam."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from tests.bench.peers.workload import LR, Task, clock, decoder, encoder, floats
from vaezoo.functional import aggregate_log_densities, covariance, gaussian_kl


def penalty(method: str, mu: Tensor, logvar: Tensor, z: Tensor, images: int) -> Tensor:
    """What the method adds to the reconstruction loss."""
    kl = gaussian_kl(mu, logvar).sum(1).mean()
    if method == "BetaVAE":
        return 4 * kl
    if method == "TCVAE":
        joint, product = aggregate_log_densities(z, mu, logvar, images)
        return kl + 5 * (joint - product).mean()
    gap = covariance(mu) - torch.eye(mu.shape[1])
    return kl + 10 * gap.square().sum() + 90 * gap.diagonal().square().sum()


def batches(images: Tensor, size: int) -> Iterator[Tensor]:
    """An epoch in random order."""
    for ids in torch.randperm(len(images)).split(size):
        yield images[ids]


def train(task: Task, images: Tensor) -> None:
    """Loss, gradients, Adam."""
    model = nn.ModuleList([encoder(task.size), decoder(task.size)])
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, fused=True)
    for x in batches(images, task.size.batch):
        optimizer.zero_grad()
        mu, logvar = model[0](x).chunk(2, dim=1)
        z = mu + (logvar / 2).exp() * torch.randn_like(mu)
        bce = nn.functional.binary_cross_entropy_with_logits(model[1](z), x, reduction="sum") / len(x)
        (bce + penalty(task.method, mu, logvar, z, len(images))).backward()
        optimizer.step()
        clock.tick()


def main() -> None:
    """Train, or load, and report."""
    task = Task.parse()
    images = floats(task.load())
    if task.work == "loader":
        for _ in batches(images, task.size.batch):
            clock.tick()
    else:
        train(task, images)
    clock.report(task)


if __name__ == "__main__":
    main()
