"""3DShapes drawn from its factors: a cube, cylinder, sphere or capsule in a room with coloured walls and floor."""

import colorsys
from functools import cache

import torch
from torch import Tensor

from datamodules.renderers.shapes3d_geometry import FLOOR, GLOSSY, SIZE, SKY, SOLIDS, WALL, view

LEVELS = 63  # of brightness a surface: with the sky, four surfaces make 253 codes, which fit a byte
GLOSS = 0.101  # white that the lamp adds to the solid
SKY_COLOUR = (153, 226, 249)


class Shapes3DRenderer:
    """Draw images of 3DShapes (Burgess & Kim, 2018) from factor indices.

    The factors are floor hue, wall hue and object hue (10 each, 0 to 0.9), scale (8, from 0.75 to 1.25), shape (4:
    cube, cylinder, sphere, capsule) and orientation (15, from -30 to 30 degrees). The scene is computed once for every
    scale, shape and orientation; an image is that scene with the colours of its three hues filled in.

    Departs from the dataset: walls and floor have no texture and edges are not smoothed. On 50 genuine frames the mean
    absolute error is 3.4 of 255.

    Args:
        device: Where images are drawn.
    """

    image_shape = (3, SIZE, SIZE)
    factor_sizes = (10, 10, 10, 8, 4, 15)

    def __init__(self, device: torch.device | str = "cpu") -> None:
        codes, levels = _coded_scenes()
        self._codes = codes.to(device)
        white = torch.tensor([0.0, 0.0, 0.0, GLOSS])
        hues = torch.tensor([colorsys.hsv_to_rgb(hue / 10, 1, 1) for hue in range(10)])
        colours = (hues[:, :, None, None] * levels + white[:, None]).clamp(max=1)  # (10, 3, 4, LEVELS)
        palette = (255 * colours).round().to(torch.uint8).to(device)
        self._floor, self._wall = palette[:, :, FLOOR], palette[:, :, WALL]
        self._solid = palette[:, :, WALL + 1 :].flatten(2)  # dull and glossy
        self._sky = torch.tensor(SKY_COLOUR, dtype=torch.uint8, device=device).view(1, 3, 1)

    def draw(self, factors: Tensor) -> Tensor:
        """Draw a batch.

        Args:
            factors: Indices within `factor_sizes`, int64 (B, 6).

        Returns:
            Images, uint8 (B, 3, 64, 64).
        """
        floor, wall, solid, scale, shape, orientation = factors.to(self._codes.device).unbind(1)
        sky = self._sky.expand(len(factors), -1, -1)
        hues = ((self._floor, floor), (self._wall, wall), (self._solid, solid))
        colours = torch.cat([*(palette.index_select(0, hue) for palette, hue in hues), sky], 2)  # (B, 3, codes)
        codes = self._codes.index_select(0, (4 * scale + shape) * 15 + orientation).long()  # (B, 4096)
        return colours.gather(2, codes[:, None].expand(-1, 3, -1)).view(-1, *self.image_shape)


@cache
def _coded_scenes() -> tuple[Tensor, Tensor]:
    """A surface and its level of brightness for each pixel, uint8 (480, 4096), and the levels, (4, LEVELS).

    A second of work, once a process.
    """
    surfaces, shades = _scenes()
    # Each surface has its own even levels, from its darkest pixel to its brightest.
    ends = torch.stack([torch.stack(shades[surfaces == kind].aminmax()) for kind in range(SKY)])  # (4, 2)
    low, step = ends[:, 0], (ends[:, 1] - ends[:, 0]) / (LEVELS - 1)
    coloured = surfaces.clamp(max=GLOSSY)
    codes = LEVELS * coloured + ((shades - low[coloured]) / step[coloured]).round().long()
    levels = low[:, None] + step[:, None] * torch.arange(LEVELS)
    return codes.where(surfaces < SKY, SKY * LEVELS).to(torch.uint8), levels


def _scenes() -> tuple[Tensor, Tensor]:
    """Surfaces and shades of every scale, shape and orientation, (480, 4096) each."""
    scales, angles = torch.linspace(0.75, 1.25, 8), torch.linspace(-30, 30, 15).tolist()
    views = [view(solid, scales, angle) for solid in SOLIDS for angle in angles]
    surfaces, shades = (torch.stack(pictures, 1).flatten(0, 1) for pictures in zip(*views, strict=True))
    return surfaces, shades
