"""A small dataset whose pictures spell their own ids."""

from typing import Any

import torch
from torch import Tensor

from datamodules.factors import Factor
from datamodules.grids import GridDataModule


class Numbered:
    def __init__(self, total: int) -> None:
        self.total = total

    def __len__(self) -> int:
        return self.total

    def images(self, ids: Tensor) -> Tensor:
        high_and_low = torch.stack([ids // 256, ids % 256], dim=1)
        return high_and_low.to(torch.uint8).view(-1, 1, 1, 2)


class ToyDataModule(GridDataModule):
    """120 pictures of 1×1×2."""

    image_shape = (1, 1, 2)
    factors = (Factor("shape", 4, "categorical"), Factor("size", 5), Factor("angle", 6, "periodic"))
    source = "render"

    def __init__(self, **options: Any) -> None:
        super().__init__(**({"batch_size": 8, "val_size": 14, "test_size": 10} | options))

    def open(self) -> Numbered:
        return Numbered(120)


def ids_of(x: Tensor) -> list[int]:
    """What pictures spell, as bytes or as floats in [0, 1]."""
    pixels = (x * 255).round().long() if x.is_floating_point() else x.long()
    return (pixels[:, 0, 0, 0] * 256 + pixels[:, 0, 0, 1]).tolist()
