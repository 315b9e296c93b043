"""dSprites drawn from its factors: a square, an ellipse or a heart, white on black.

The constants of the outlines are fitted to 320 frames of the genuine dataset, which hold 77,010 white pixels: 16 pixels
differ.
"""

import math
from functools import cache

import torch
from torch import Tensor

VERTICES = 512  # of an outline: its chords are shorter than a pixel and within 3e-4 pixels of the curve
STEP = 62  # every centre, 15.5 + 32 i / 31 pixels, is a whole number of 1 / STEP pixels
CROSSINGS = 4  # a horizontal line enters and leaves a shape at most twice


def square() -> Tensor:
    """Outline of the square at scale 1 about its centre, (VERTICES, 2) of x to the right and y down, in pixels."""
    side = torch.linspace(-9.598, 9.598, VERTICES // 4 + 1, dtype=torch.float64)[:-1]
    edge = torch.full_like(side, 9.598)
    sides = [(side, -edge), (edge, side), (-side, edge), (-edge, -side)]
    return torch.cat([torch.stack(xy, 1) for xy in sides])


def ellipse() -> Tensor:
    """Outline of the ellipse at scale 1, (VERTICES, 2)."""
    t = 2 * math.pi / VERTICES * torch.arange(VERTICES, dtype=torch.float64)
    return torch.stack([12.77 * t.cos(), 7.2125 * t.sin()], 1)


def heart() -> Tensor:
    """Outline of the heart at scale 1, point down, (VERTICES, 2)."""
    t = 2 * math.pi / VERTICES * torch.arange(VERTICES, dtype=torch.float64)
    up = 13 * t.cos() - 5 * (2 * t).cos() - 2 * (3 * t).cos() - (4 * t).cos()
    return torch.stack([9.595 * t.sin() ** 3, -0.6622 * up - 1.4363], 1)


class DSpritesRenderer:
    """Draw images of dSprites (Matthey et al., 2017) from factor indices.

    The factors are colour (1), shape (3: square, ellipse, heart), scale (6, from 0.5 to 1), orientation (40 over
    [0, 2 pi], both ends included, anticlockwise), x (32, to the right) and y (32, down). A pixel is on when its centre
    is inside the outline.

    Args:
        device: Where images are drawn.
    """

    image_shape = (1, 64, 64)
    factor_sizes = (1, 3, 6, 40, 32, 32)

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self._crossings = _table().to(device)  # (23040, 4, 64)
        self._strides = torch.tensor([0, 6 * 40 * 32, 40 * 32, 32, 0, 1], device=device)
        # Entry k has a bit for each pixel whose centre is left of k / STEP; the last pixel is the sign bit.
        column = torch.arange(64)
        self._left = ((STEP * column < torch.arange(64 * STEP)[:, None]) * (1 << column)).sum(1).to(device)
        # Entry k spreads the eight bits of the byte k over eight bytes of 0 or 255, packed as one int64.
        bits = torch.arange(256)[:, None] >> torch.arange(8) & 1
        self._spread = (255 * bits).to(torch.uint8).view(torch.int64).flatten().to(device)

    def draw(self, factors: Tensor) -> Tensor:
        """Draw a batch.

        Args:
            factors: Indices within `factor_sizes`, int64 (B, 6).

        Returns:
            Images of 0 and 255, uint8 (B, 1, 64, 64).
        """
        factors = factors.to(self._strides.device)
        pose = (factors * self._strides).sum(1)
        # An index of x is 32 / 31 pixels, 64 units of 1 / STEP.
        crossings = self._crossings.index_select(0, pose) + 64 * factors[:, 4, None, None]  # (B, 4, 64)
        left = self._left.index_select(0, crossings.flatten()).view_as(crossings)
        # Even-odd rule: a pixel is inside when it is left of an odd number of crossings.
        pairs = left[:, :2] ^ left[:, 2:]
        rows = pairs[:, 0] ^ pairs[:, 1]  # (B, 64), a bit a pixel
        pixels = self._spread.index_select(0, rows.view(torch.uint8).flatten().int())
        return pixels.view(torch.uint8).view(-1, *self.image_shape)


@cache
def _table() -> Tensor:
    """Crossings of every shape, scale, orientation and y: a quarter of a second, once a process."""
    return torch.cat([_crossings(_poses(outline)) for outline in (square(), ellipse(), heart())])


def _poses(outline: Tensor) -> Tensor:
    """The outline at every scale and orientation, (V, 2) -> (6 * 40, V, 2)."""
    angle = 2 * math.pi / 39 * (torch.arange(40, dtype=torch.float64) % 39)  # the last is the first, exactly
    turn = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], 1).view(40, 2, 2)
    scale = torch.linspace(0.5, 1, 6, dtype=torch.float64)
    return (scale[:, None, None, None] * (outline @ turn)).flatten(0, 1)


def _crossings(outlines: Tensor) -> Tensor:
    """Where the rows of pixels cross outlines at the first x and each y: (N, V, 2) -> int16 (N * 32, CROSSINGS, 64).

    Crossings are rounded up to 1 / STEP pixels, which moves none across the centre of a pixel at any x. Empty slots
    hold zeros, an even number of them a row, which the even-odd rule cancels.
    """
    centre = 15.5 + 32 / 31 * torch.arange(32, dtype=torch.float64)
    x = outlines[..., 0] + centre[0]  # (N, V)
    y = (outlines[:, None, :, 1] + centre[:, None]).flatten(0, 1)  # (N * 32, V)
    below = y.ceil()
    image, start = (below != below.roll(-1, 1)).nonzero(as_tuple=True)
    outline, end = image // 32, (start + 1) % VERTICES
    x0, x1, y0, y1 = x[outline, start], x[outline, end], y[image, start], y[image, end]
    row = torch.minimum(y0, y1).ceil()
    crossing = (STEP * (x0 + (row - y0) / (y1 - y0) * (x1 - x0))).ceil()
    line, order = (64 * image + row.long()).sort()
    slot = torch.arange(len(line)) - torch.searchsorted(line, line)
    table = torch.zeros(len(y), CROSSINGS, 64, dtype=torch.int16)
    table[line // 64, slot, line % 64] = crossing[order].short()
    return table
