"""What every candidate trains: the same network, images and clock. Needs torch alone: every environment imports it."""

import argparse
import json
import statistics
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from tests.bench.children import peak_mb

METHODS = ("BetaVAE", "TCVAE", "FactorVAE", "DIPVAE")
WORK = ("train", "overhead", "loader")
LR = 5e-4


class Size(NamedTuple):
    """Images, batches and latents of a piece of work."""

    shape: tuple[int, int, int]
    batch: int
    latents: int


CONV = Size((1, 64, 64), 64, 10)
TINY = Size((1, 1, 2), 16, 2)
"""So small that arithmetic costs next to nothing."""


class Task(NamedTuple):
    """One child's work, as its command line says."""

    method: str
    work: str
    images: Path
    warm: int
    steps: int
    started: float
    compiled: bool

    @classmethod
    def parse(cls) -> "Task":
        """Read the command line."""
        parser = argparse.ArgumentParser()
        parser.add_argument("method", choices=METHODS)
        parser.add_argument("work", choices=WORK)
        parser.add_argument("images", type=Path, help="Bytes in an npy file, (N, H, W).")
        parser.add_argument("--warm", type=int, required=True)
        parser.add_argument("--steps", type=int, required=True)
        parser.add_argument("--started", type=float, required=True, help="time.time() when the process was started.")
        parser.add_argument("--compiled", action="store_true")
        return cls(**vars(parser.parse_args()))

    @property
    def size(self) -> Size:
        """Of its images and network."""
        return TINY if self.work == "overhead" else CONV

    def load(self) -> Any:
        """One epoch of images, (N, H, W) bytes."""
        return np.load(self.images)[: (self.warm + self.steps) * self.size.batch]


class Clock:
    """Notes when steps, or batches of a loader, end."""

    def __init__(self) -> None:
        self.ticks: list[float] = []
        self.first = 0.0

    def tick(self) -> None:
        """A step has ended."""
        if not self.ticks:
            self.first = time.time()
        self.ticks.append(time.perf_counter())

    def report(self, task: Task) -> None:
        """Print one line of JSON: what the steps after the first few took."""
        expected = task.warm + task.steps
        if len(self.ticks) != expected:
            raise RuntimeError(f"{len(self.ticks)} steps were made, not {expected}")
        times = self.ticks[task.warm - 1 :]
        found = {
            "ms": 1e3 * (times[-1] - times[0]) / task.steps,
            "median ms": 1e3 * statistics.median(b - a for a, b in pairwise(times)),
            "peak MB": peak_mb(),
            "first step s": self.first - task.started,
        }
        print("\n" + json.dumps(found), flush=True)


clock = Clock()


def encoder(size: Size) -> nn.Sequential:
    """Burgess et al. (2018): four convolutions and two dense layers, then means and log-variances."""
    if size == TINY:
        return nn.Sequential(nn.Flatten(), nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2 * size.latents))
    convolutions: list[nn.Module] = []
    for channels in (size.shape[0], 32, 32, 32):
        convolutions += [nn.Conv2d(channels, 32, 4, 2, 1), nn.ReLU()]
    dense = [nn.Flatten(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()]
    return nn.Sequential(*convolutions, *dense, nn.Linear(256, 2 * size.latents))


def decoder(size: Size) -> nn.Sequential:
    """The encoder's mirror image, to logits."""
    if size == TINY:
        return nn.Sequential(nn.Linear(size.latents, 8), nn.ReLU(), nn.Linear(8, 2), nn.Unflatten(1, size.shape))
    dense = [nn.Linear(size.latents, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 512), nn.ReLU()]
    convolutions: list[nn.Module] = []
    for channels in (32, 32, 32):
        convolutions += [nn.ConvTranspose2d(32, channels, 4, 2, 1), nn.ReLU()]
    return nn.Sequential(
        *dense, nn.Unflatten(1, (32, 4, 4)), *convolutions, nn.ConvTranspose2d(32, size.shape[0], 4, 2, 1)
    )


def floats(images: Any) -> torch.Tensor:
    """Bytes (N, H, W) as floats in [0, 1], (N, 1, H, W)."""
    return torch.from_numpy(images).unsqueeze(1).float().div_(255)
