"""Pictures as tensors (3, H, W) in [0, 1]: grids of images with readable names, and plots."""

from vaezoo.figures.grid import grid, stack
from vaezoo.figures.plots import curves, heat_maps, matrix

__all__ = ["curves", "grid", "heat_maps", "matrix", "stack"]
