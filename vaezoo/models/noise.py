"""Batch noise as a pure function of seed, rank and batch number."""

import os
import random

import numpy as np
import torch


def seed_batch(rank: int, batch: int, device: torch.device, loader: int | None = None) -> None:
    """Reseed torch, numpy and Python for one batch.

    A resumed run then draws the same noise as an unbroken one, without generator states in the checkpoint (it would
    need one per rank and device). Ranks that share a seed, as Lightning's do, draw different noise, as the ELBO's
    expectation over the global batch requires (Kingma & Welling, 2014, Eq. 8). Does nothing unless `seed_everything`
    was called, so manual seeding keeps working.

    Args:
        rank: Global rank.
        batch: Training batches before this one, over all epochs; in evaluation, the index in the loader.
        device: Device of the model.
        loader: Index of the evaluation loader, so each evaluation draws the same noise; None in training.
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
