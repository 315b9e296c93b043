"""Pictures in memory."""

import torch
from torch import Tensor
from typing_extensions import Self

from datamodules.sources import ImageSource


class InMemory:
    """Pictures as bytes in one tensor.

    Args:
        store: All pictures, uint8 (N, C, H, W).
    """

    def __init__(self, store: Tensor) -> None:
        self.store = store

    @classmethod
    def copy_of(cls, source: ImageSource, image_shape: tuple[int, int, int], device: torch.device) -> Self:
        """Read or render every image of a source once, and keep them on a device."""
        store = torch.empty((len(source), *image_shape), dtype=torch.uint8, device=device)
        for part, ids in zip(store.split(1024), torch.arange(len(source)).split(1024), strict=True):
            part.copy_(source.images(ids))
        return cls(store)

    def __len__(self) -> int:
        """Number of images."""
        return len(self.store)

    def images(self, ids: Tensor) -> Tensor:
        """Images by id, uint8 (B, C, H, W), from ids on the device of the store."""
        return self.store.index_select(0, ids)  # copies whole pictures; [ids] would go pixel by pixel
