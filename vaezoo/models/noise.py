"""Noise of a batch: a pure function of seed, rank and batch."""

import os
import random

import numpy as np
import torch


def seed_batch(rank: int, batch: int, device: torch.device, loader: int | None = None) -> None:
    """Start the random numbers of torch, numpy and Python anew for one batch.

    A resumed run then draws what an unbroken one draws, from whatever batch on, with no generator's state in the
    checkpoint (which would have to hold one for each rank and device); and ranks that share a seed, as Lightning's do,
    draw different noise, as the ELBO's expectation over the global batch asks for (Kingma & Welling, 2014, Eq. 8).
    Nothing happens where `seed_everything` was not called: whoever seeds by hand is left alone.

    Args:
        rank: Global rank.
        batch: Training batches before this one, over all epochs; in evaluation, its number in the loader.
        device: Where the model is.
        loader: Number of the loader in evaluation, which then draws the same each time; None in training.
    """
    seed = os.environ.get("PL_GLOBAL_SEED")
    if seed is None:
        return
    # The spawn key sets these apart from the loaders' orders, which mix plain keys with the same function.
    key = (rank, batch) if loader is None else (rank, batch, loader)
    words = np.random.SeedSequence(int(seed), spawn_key=key).generate_state(3).tolist()
    # Not torch.manual_seed: without CUDA it takes a stack trace on each call.
    torch.default_generator.manual_seed(words[0])
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(words[0])
    np.random.seed(words[1])  # noqa: NPY002  # the generator that a user's transform or callback may draw from
    random.seed(words[2])
