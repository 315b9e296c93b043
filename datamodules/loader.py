"""Batches by index: no per-sample Python, sharded over ranks, resumable at any batch."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from vaezoo.types import Batch


class Epochs:
    """Order of ids in each epoch, a pure function of seed, epoch and rank.

    Every rank takes its share of one permutation. The last incomplete batch is dropped in training, kept otherwise.
    Labelled ids, if any, form a second, endless stream that is reshuffled at each pass, so there may be fewer of them
    than a batch.

    Args:
        ids: The images of the split.
        batch_size: Images per batch on each rank.
        shuffle: Permute, and drop the last incomplete batch.
        seed: Seed of the permutations.
        labelled: Ids of the labelled images.
        labelled_batch_size: Labelled images added to each batch on each rank.
    """

    def __init__(
        self,
        ids: Tensor,
        batch_size: int,
        shuffle: bool,
        seed: int,
        labelled: Tensor | None = None,
        labelled_batch_size: int = 0,
    ) -> None:
        self.ids, self.batch_size, self.shuffle, self.seed = ids, batch_size, shuffle, seed
        self.labelled = ids[:0] if labelled is None else labelled
        self.labelled_batch_size = labelled_batch_size if len(self.labelled) else 0
        if shuffle and len(self) == 0:
            each = f" on each of {_world()[1]} processes" if _world()[1] > 1 else ""
            raise ValueError(
                f"too few training images ({len(ids)}) for one batch of {batch_size}{each}: lower batch_size "
                f"(--data.batch_size)"
            )

    def __len__(self) -> int:
        """Batches an epoch on each rank."""
        whole = self.batch_size * _world()[1]
        return len(self.ids) // whole if self.shuffle else -(-len(self.ids) // whole)

    def batches(self, epoch: int, first: int = 0) -> Iterator[tuple[Tensor, int]]:
        """Ids of each batch from the given one on, and how many of its last ids are labelled."""
        rank, world = _world()
        order = self.ids
        if self.shuffle:
            order = order[torch.randperm(len(order), generator=_generator(self.seed, 0, epoch))]
        elif len(order) % world:  # as DistributedSampler: every rank has the same number
            order = torch.cat([order, order[: world - len(order) % world]])
        passes, extra = _Passes(self.labelled, self.seed), self.labelled_batch_size
        share = order[rank::world]
        for i in range(first, len(self)):
            stream = share[i * self.batch_size : (i + 1) * self.batch_size]
            place = ((epoch * len(self) + i) * world + rank) * extra
            yield torch.cat([stream, *passes.at(place, extra)]), extra


class _Passes:
    """Endless passes over ids, each in a new order; any place in them can be looked up."""

    def __init__(self, ids: Tensor, seed: int) -> None:
        self.ids, self.seed = ids, seed
        # A block of passes shares a generator: with ten labels, a batch needs several passes.
        self._passes_a_block = 1 + 4096 // max(len(ids), 1)
        self._number, self._block = -1, ids[:0]

    def at(self, first: int, count: int) -> Iterator[Tensor]:
        """Ids at the places from first on, count of them, in parts."""
        while count:
            number, offset = divmod(first, len(self.ids) * self._passes_a_block)
            part = self._draw(number)[offset : offset + count]
            yield part
            first, count = first + len(part), count - len(part)

    def _draw(self, number: int) -> Tensor:
        if number != self._number:
            generator, n = _generator(self.seed, 1, number), len(self.ids)
            orders = [torch.randperm(n, generator=generator) for _ in range(self._passes_a_block)]
            self._number, self._block = number, self.ids[torch.cat(orders)]
        return self._block


class BatchLoader:
    """Iterable of batches, one fetch per batch. Lightning saves and restores its position.

    Args:
        fetch: Makes a batch from ids and the number of labelled ids at their end.
        epochs: Order of ids.
        num_workers: Worker processes; 0 fetches in the training process, best for data in memory.
        pin_memory: Copy batches to pinned memory, for CUDA.
    """

    def __init__(
        self, fetch: Callable[[Tensor, int], Batch], epochs: Epochs, num_workers: int = 0, pin_memory: bool = False
    ) -> None:
        self.fetch, self.epochs, self.num_workers, self.pin_memory = fetch, epochs, num_workers, pin_memory
        self.limit: float | None = None
        """Number or share of an epoch's batches that the Trainer takes. Defaults to all."""
        self._epoch = -1  # of the current iteration
        self._position = 0  # batches that it has handed out
        self._resumed = False  # whether that position comes from a saved state

    @property
    def dataset(self) -> Tensor:
        """Ids of the images that an epoch goes through, on all ranks together, (N,)."""
        return self.epochs.ids

    @property
    def place(self) -> tuple[int, int]:
        """Epoch and index of the last batch."""
        return self._epoch, self._position - 1

    def batch_ids(self, epoch: int, batch: int) -> Tensor:
        """Ids of the images of a batch on this rank, labelled ones last, (B,)."""
        return next(self.epochs.batches(epoch, batch))[0]

    def __len__(self) -> int:
        """Batches an epoch on each rank."""
        return len(self.epochs)

    def __iter__(self) -> Iterator[Batch]:
        """Batches of the next epoch; after restoring a state, the rest of that epoch.

        A resuming Trainer may take one batch and start over. A resumed epoch continues to its end, so no batch is
        skipped.
        """
        if not self._resumed or self._position >= self._taken():
            self._epoch, self._position = self._epoch + 1, 0
        for batch in self._fetched(self._epoch, self._position):
            self._position += 1
            self._resumed &= self._position < self._taken()
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """Epoch and batch, for resuming."""
        return {"epoch": self._epoch, "position": self._position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a saved position."""
        self._epoch, self._position, self._resumed = state["epoch"], state["position"], True

    def _taken(self) -> int:
        """Batches of an epoch after which the Trainer starts the next."""
        if self.limit is None:
            return len(self)
        return min(self.limit, len(self)) if isinstance(self.limit, int) else int(self.limit * len(self))

    def _fetched(self, epoch: int, first: int) -> Iterator[Batch]:
        batches = self.epochs.batches(epoch, first)
        if not self.num_workers and not self.pin_memory:
            return (self.fetch(ids, labelled) for ids, labelled in batches)
        loader: DataLoader[Batch] = DataLoader(
            _Fetch(self.fetch),
            sampler=batches,
            batch_size=None,
            num_workers=self.num_workers,
            pin_memory=self.pin_memory,
        )
        return iter(loader)


class _Fetch(Dataset[Batch]):
    def __init__(self, fetch: Callable[[Tensor, int], Batch]) -> None:
        self.fetch = fetch

    def __getitem__(self, index: Any) -> Batch:
        return self.fetch(*index)


def _generator(*key: int) -> torch.Generator:
    """Random numbers of their own for each key."""
    # Torch reads the low 32 bits of a seed; the sequence mixes the whole key into them.
    return torch.Generator().manual_seed(int(np.random.SeedSequence(key).generate_state(1)[0]))


def _world() -> tuple[int, int]:
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1
