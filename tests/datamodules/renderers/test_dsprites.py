"""dSprites against its published geometry, a test of every pixel, and frames of the genuine dataset."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from datamodules.renderers.dsprites import DSpritesRenderer, ellipse, heart, square
from tests.helpers.paths import DATA

SQUARE, ELLIPSE, HEART = range(3)
FRAMES = DATA / "dsprites_frames.npz"


@pytest.fixture(scope="module")
def renderer() -> DSpritesRenderer:
    return DSpritesRenderer()


def grid(shape: int, scale: int = 5, orientation: Tensor | int = 0, x: Tensor | int = 0, y: Tensor | int = 0) -> Tensor:
    """Factors of images in which the tensors among the arguments vary together."""
    n = max(torch.as_tensor(value).numel() for value in (orientation, x, y))
    return torch.stack([torch.as_tensor(value).expand(n) for value in (0, shape, scale, orientation, x, y)], 1)


def random_factors(n: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.stack([torch.randint(size, (n,), generator=generator) for size in DSpritesRenderer.factor_sizes], 1)


def iou(a: Tensor, b: Tensor) -> Tensor:
    a, b = a.flatten(1) > 0, b.flatten(1) > 0
    return (a & b).sum(1) / (a | b).sum(1)


def own_frame(factors: list[int]) -> tuple[Tensor, Tensor]:
    """Position of each pixel in the frame of the upright shape at scale 1, (64, 64) each."""
    _, _, scale_index, orientation, i, j = factors
    scale, angle = 0.5 + 0.1 * scale_index, 2 * math.pi * orientation / 39
    pixels = torch.arange(64, dtype=torch.float64)
    dx, dy = pixels[None, :] - (15.5 + 32 * i / 31), pixels[:, None] - (15.5 + 32 * j / 31)
    u = math.cos(angle) * dx - math.sin(angle) * dy
    v = math.sin(angle) * dx + math.cos(angle) * dy
    return u / scale, v / scale


def depth(shape: int, u: Tensor, v: Tensor) -> Tensor:
    """Positive inside the shape, negative outside, from its closed form."""
    if shape == SQUARE:
        return 9.598 - torch.maximum(u.abs(), v.abs())
    if shape == ELLIPSE:
        return 1 - (u / 12.77) ** 2 - (v / 7.2125) ** 2
    # A vertical line at |u| meets the heart where sin(t)^3 = |u| / 9.595: once on its lobe and once on its lower side.
    t = ((u.abs() / 9.595).clamp(max=1) ** (1 / 3)).asin()
    height = [0.6622 * (13 * s.cos() - 5 * (2 * s).cos() - 2 * (3 * s).cos() - (4 * s).cos()) for s in (t, math.pi - t)]
    inside = torch.minimum(v + height[0] + 1.4363, -height[1] - 1.4363 - v)
    return torch.where(u.abs() > 9.595, -1.0, inside)


def test_images_are_black_and_white(renderer: DSpritesRenderer) -> None:
    images = renderer.draw(random_factors(50))
    assert images.shape == (50, 1, 64, 64)
    assert images.dtype == torch.uint8
    assert set(images.flatten().tolist()) == {0, 255}


def test_an_image_does_not_depend_on_its_batch(renderer: DSpritesRenderer) -> None:
    factors = random_factors(20)
    assert torch.equal(renderer.draw(factors), torch.cat([renderer.draw(row[None]) for row in factors]))
    assert renderer.draw(factors[:0]).shape == (0, 1, 64, 64)


@pytest.mark.parametrize(("shape", "area"), [(SQUARE, 19.2**2), (ELLIPSE, math.pi * 12.8 * 7.2), (HEART, 225.0)])
def test_area_grows_with_the_square_of_the_scale(renderer: DSpritesRenderer, shape: int, area: float) -> None:
    positions = torch.cartesian_prod(torch.arange(39), torch.arange(0, 32, 5), torch.arange(0, 32, 5))
    for index in range(6):
        images = renderer.draw(grid(shape, index, *positions.unbind(1)))
        pixels = (images > 0).sum() / len(images)
        assert pixels == pytest.approx(area * (0.5 + 0.1 * index) ** 2, rel=0.01)


@pytest.mark.parametrize(
    ("shape", "scale", "columns", "rows"),
    [
        (SQUARE, 5, (6, 25), (6, 25)),  # 15.5 +- 9.6
        (SQUARE, 0, (11, 20), (11, 20)),  # 15.5 +- 4.8
        (ELLIPSE, 5, (3, 28), (9, 22)),  # 15.5 +- 12.8 and 7.2
        (ELLIPSE, 0, (10, 21), (12, 19)),  # 15.5 +- 6.4 and 3.6
        (HEART, 5, (6, 25), (7, 23)),  # as in the genuine frame
        (HEART, 0, (11, 20), (11, 19)),
    ],
)
def test_extent(
    renderer: DSpritesRenderer, shape: int, scale: int, columns: tuple[int, int], rows: tuple[int, int]
) -> None:
    y, x = renderer.draw(grid(shape, scale))[0, 0].nonzero(as_tuple=True)
    assert (int(x.min()), int(x.max())) == columns
    assert (int(y.min()), int(y.max())) == rows


@pytest.mark.parametrize("axis", ["x", "y"])
def test_centre_moves_along_its_axis(renderer: DSpritesRenderer, axis: str) -> None:
    orientations = torch.arange(39)
    expected = torch.tensor([15.5 + 32 * 11 / 31] * 2)
    for index in range(32):
        position = {"x": 11, "y": 11} | {axis: index}
        images = renderer.draw(grid(ELLIPSE, 5, orientations, **position))
        row, column = images[:, 0].nonzero()[:, 1:].double().mean(0)
        expected["xy".index(axis)] = 15.5 + 32 * index / 31
        assert torch.stack([column, row]).tolist() == pytest.approx(expected.tolist(), abs=0.05)


def test_the_last_orientation_is_the_first(renderer: DSpritesRenderer) -> None:
    for shape in range(3):
        first, second, last = renderer.draw(grid(shape, orientation=torch.tensor([0, 1, 39])))
        assert torch.equal(first, last)
        assert not torch.equal(first, second)


def test_the_heart_points_down_and_turns_anticlockwise(renderer: DSpritesRenderer) -> None:
    # The point is far from the centre of mass, so that the third moment along an axis tells where it is.
    images = renderer.draw(grid(HEART, orientation=torch.tensor([0, 10, 20])))
    pixels = [image[0].nonzero().double() for image in images]
    down, right, up = (((at - at.mean(0)) ** 3).mean(0) for at in pixels)
    assert down[0] > 10
    assert abs(down[1]) < 1
    assert right[1] > 10
    assert abs(right[0]) < 10
    assert up[0] < -10
    assert abs(up[1]) < 10


@pytest.mark.parametrize(("shape", "quarters"), [(SQUARE, 1), (ELLIPSE, 2)])
def test_symmetry(renderer: DSpritesRenderer, shape: int, quarters: int) -> None:
    # The first position, 15.5, is the middle of the 32 x 32 pixels in the corner.
    corner = renderer.draw(grid(shape, 4, torch.arange(40)))[:, 0, :32, :32]
    assert torch.equal(corner, corner.rot90(quarters, (1, 2)))
    if shape == ELLIPSE:
        assert not torch.equal(corner, corner.rot90(1, (1, 2)))


def test_a_pixel_is_on_when_its_centre_is_inside(renderer: DSpritesRenderer) -> None:
    factors = random_factors(600)
    unclear = 0
    for row, image in zip(factors.tolist(), renderer.draw(factors)[:, 0], strict=True):
        u, v = own_frame(row)
        inside = depth(row[1], u, v)
        clear = inside.abs() > 1e-3  # outlines are polygons
        unclear += int((~clear).sum())
        assert torch.equal(image[clear] > 0, inside[clear] > 0), row
    assert unclear < 100


def test_every_pixel_against_ray_casting(renderer: DSpritesRenderer) -> None:
    factors = random_factors(30)
    for row, image in zip(factors.tolist(), renderer.draw(factors)[:, 0], strict=True):
        u, v = own_frame(row)
        x0, y0 = (square, ellipse, heart)[row[1]]().unbind(1)
        x1, y1 = x0.roll(-1), y0.roll(-1)
        u, v = u.flatten()[:, None], v.flatten()[:, None]
        # Upwards in the frame of the shape, where the renderer looks along the rows of the image.
        crosses = ((x0 <= u) != (x1 <= u)) & (y0 + (u - x0) / (x1 - x0) * (y1 - y0) < v)
        assert torch.equal(image.flatten() > 0, crosses.sum(1) % 2 == 1), row


def test_genuine_frames(renderer: DSpritesRenderer) -> None:
    with np.load(FRAMES, allow_pickle=False) as data:
        factors = torch.from_numpy(data["factors"])
        frames = torch.from_numpy(np.unpackbits(data["frames"], axis=1, bitorder="little"))
    assert set(factors[:, 1].tolist()) == {SQUARE, ELLIPSE, HEART}
    overlap = iou(renderer.draw(factors), frames)
    assert overlap.mean() > 0.995
    assert overlap.min() > 0.97
    mirrored = factors.clone()
    mirrored[:, 3] = 39 - factors[:, 3]
    turned = (factors[:, 3] > 0) & (factors[:, 1] == HEART)
    assert bool((iou(renderer.draw(mirrored), frames) < overlap - 0.05)[turned].all())
