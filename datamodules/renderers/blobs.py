"""Blobs drawn from their factors: a blurred white disk at each pixel of a black canvas."""

import torch
from torch import Tensor
from torch.nn.functional import conv2d

SIZE = 64
WIDE = 2 * SIZE  # side of a canvas with a blob in the middle, wide enough for a window on it to put the blob anywhere


class BlobsRenderer:
    """Draw the Blobs images of WeLa-VAE (Margonis et al., 2020, Section 4.1) from factor indices.

    A blob is a disk blurred by a Gaussian and cut off at the border of the canvas. The factors are the row and the
    column of its centre, from the top left corner, and which of the blobs at that position it is. The paper speaks of
    25 "different Gaussian blobs" a position, but its generator draws identical ones, as `jitter=0` does. Otherwise
    their radii are spread evenly over radius * [1 - jitter, 1 + jitter], which adds a third factor.

    Args:
        radius: Mean radius of the disks, in pixels.
        blur: Standard deviation of the Gaussian, in pixels.
        kernel: Width of the square window to which the Gaussian is truncated, in pixels; odd.
        jitter: Largest change of the radius, as a fraction of it.
        samples: Blobs at each position.
        device: Where images are drawn.

    Raises:
        ValueError: An argument is out of its range, or the largest blob is wider than twice the canvas.
    """

    image_shape = (1, SIZE, SIZE)

    def __init__(
        self,
        radius: float = 10,
        blur: float = 3.5,
        kernel: int = 21,
        jitter: float = 0.0,
        samples: int = 25,
        device: torch.device | str = "cpu",
    ) -> None:
        if radius <= 0 or blur <= 0 or samples < 1:
            raise ValueError(f"radius, blur and samples must be positive, got {radius}, {blur} and {samples}")
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"kernel must be a positive odd number, got {kernel}")
        if not 0 <= jitter < 1:
            raise ValueError(f"jitter must lie in [0, 1), got {jitter}")
        if radius * (1 + jitter) + kernel // 2 >= SIZE:
            raise ValueError(f"radius * (1 + jitter) + kernel // 2 must be below {SIZE}: choose a smaller radius")
        self.factor_sizes = (SIZE, SIZE, samples)
        spread = torch.linspace(-jitter, jitter, samples) if samples > 1 else torch.zeros(1)
        blobs = _blurred(_disks(radius * (1 + spread)), blur, kernel)
        pixels = (255 * blobs).round().to(torch.uint8).to(device).flatten()
        # Window k, 64 x 64 pixels, starts at pixel k. The windows are a view: they overlap and take no memory.
        starts = len(pixels) - (SIZE - 1) * (WIDE + 1)
        self._windows = pixels.as_strided((starts, SIZE, SIZE), (1, WIDE, 1))

    def draw(self, factors: Tensor) -> Tensor:
        """Draw a batch.

        Args:
            factors: Row, column and sample within `factor_sizes`, int64 (B, 3).

        Returns:
            Images, uint8 (B, 1, 64, 64).
        """
        row, column, sample = factors.to(self._windows.device).unbind(1)
        start = (sample * WIDE + SIZE - row) * WIDE + SIZE - column
        return self._windows.index_select(0, start).unsqueeze(1)


def _disks(radii: Tensor) -> Tensor:
    """Disks about pixel (SIZE, SIZE) of a wide canvas, (S,) -> (S, WIDE, WIDE)."""
    offset = torch.arange(-SIZE, SIZE)
    distance = torch.hypot(offset[:, None].float(), offset.float())
    # Between whole radii, a mean of the two disks: pixels simply on or off would draw radii close to each other alike.
    return (radii[:, None, None] - distance.ceil() + 1).clamp(0, 1)


def _blurred(images: Tensor, blur: float, kernel: int) -> Tensor:
    """Convolve (S, H, W) with a Gaussian of `kernel` x `kernel` pixels that sums to 1."""
    taps = torch.exp(-((torch.arange(kernel) - kernel // 2) ** 2) / (2 * blur**2))
    taps = taps / taps.sum()
    rows = conv2d(images.unsqueeze(1), taps.view(1, 1, 1, -1), padding="same")
    return conv2d(rows, taps.view(1, 1, -1, 1), padding="same").squeeze(1)
