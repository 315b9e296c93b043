"""Blobs against a disk and a Gaussian written out pixel by pixel."""

import math

import pytest
import torch
from torch import Tensor

from datamodules.renderers.blobs import BlobsRenderer


@pytest.fixture(scope="module")
def renderer() -> BlobsRenderer:
    return BlobsRenderer(jitter=0.1)


def blob(radius: int = 10, blur: float = 3.5, kernel: int = 21) -> dict[tuple[int, int], float]:
    """Brightness at each offset from the centre, 0..255."""
    half = kernel // 2
    window = range(-half, half + 1)
    weight = {(i, j): math.exp(-(i * i + j * j) / (2 * blur * blur)) for i in window for j in window}
    total = sum(weight.values())
    box = range(-radius, radius + 1)
    disk = [(i, j) for i in box for j in box if i * i + j * j <= radius**2]
    values: dict[tuple[int, int], float] = {}
    for i, j in disk:
        for (di, dj), w in weight.items():
            values[i + di, j + dj] = values.get((i + di, j + dj), 0.0) + 255 * w / total
    return values


def pasted(values: dict[tuple[int, int], float], row: int, column: int) -> Tensor:
    image = torch.zeros(64, 64)
    for (i, j), value in values.items():
        if 0 <= row + i < 64 and 0 <= column + j < 64:
            image[row + i, column + j] = value
    return image


def test_blob_is_a_blurred_disk_cut_off_at_the_border() -> None:
    values = blob()
    renderer = BlobsRenderer(jitter=0)
    for row, column in [(32, 32), (20, 40), (0, 0), (63, 5), (7, 63), (63, 63)]:
        image = renderer.draw(torch.tensor([[row, column, 3]]))[0, 0]
        assert (image - pasted(values, row, column)).abs().max() < 0.51  # rounding


def test_by_default_the_blobs_of_a_position_are_identical() -> None:
    places = torch.tensor([[32, 32], [3, 60]]).repeat_interleave(25, 0)
    images = BlobsRenderer().draw(torch.cat([places, torch.arange(25).repeat(2)[:, None]], dim=1))
    assert len(images.unique(dim=0)) == 2


def test_radius_blur_and_kernel() -> None:
    renderer = BlobsRenderer(radius=6, blur=2, kernel=9, jitter=0, samples=1)
    assert renderer.factor_sizes == (64, 64, 1)
    image = renderer.draw(torch.tensor([[30, 12, 0]]))[0, 0]
    assert (image - pasted(blob(6, 2, 9), 30, 12)).abs().max() < 0.51


def test_middle_sample_has_the_mean_radius(renderer: BlobsRenderer) -> None:
    assert torch.equal(
        renderer.draw(torch.tensor([[9, 50, 12]])), BlobsRenderer(jitter=0).draw(torch.tensor([[9, 50, 0]]))
    )


def test_samples_differ_in_size(renderer: BlobsRenderer) -> None:
    sample = torch.arange(25)
    position = torch.full_like(sample, 32)
    mass = renderer.draw(torch.stack([position, position, sample], 1)).flatten(1).sum(1) / 255  # a blur keeps the sum
    assert bool((mass.diff() > 0).all())
    assert mass[0] == pytest.approx(math.pi * 9**2, rel=0.02)
    assert mass[-1] == pytest.approx(math.pi * 11**2, rel=0.02)


def test_every_position_is_a_shift_of_the_middle(renderer: BlobsRenderer) -> None:
    middle = renderer.draw(torch.tensor([[32, 32, 7]]))[0, 0]
    positions = torch.cartesian_prod(torch.arange(64), torch.arange(64), torch.tensor([7]))
    images = renderer.draw(positions)
    assert images.shape == (4096, 1, 64, 64)
    assert images.dtype == torch.uint8
    for row, column in [(0, 0), (1, 0), (17, 60), (33, 31), (63, 0), (63, 63)]:
        wide = torch.zeros(128, 128, dtype=torch.uint8)
        wide[row : row + 64, column : column + 64] = middle
        assert torch.equal(images[64 * row + column, 0], wide[32:96, 32:96])
    assert len({image.numpy().tobytes() for image in images}) == 4096


def test_images_do_not_share_memory(renderer: BlobsRenderer) -> None:
    factors = torch.tensor([[5, 6, 7]])
    before = renderer.draw(factors).clone()
    renderer.draw(factors).zero_()
    assert torch.equal(renderer.draw(factors), before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": 0}, "radius"),
        ({"blur": -1.0}, "blur"),
        ({"samples": 0}, "samples"),
        ({"kernel": 20}, "kernel must be a positive odd"),
        ({"jitter": 1.0}, "jitter must lie in"),
        ({"radius": 60}, "smaller radius"),
    ],
)
def test_bad_options(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BlobsRenderer(**options)  # type: ignore[arg-type]
