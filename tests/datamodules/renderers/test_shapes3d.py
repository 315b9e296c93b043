"""3DShapes against implicit solids, projections worked out by hand, and frames of the genuine dataset."""

import colorsys
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from datamodules.renderers import shapes3d_geometry as geometry
from datamodules.renderers.shapes3d import Shapes3DRenderer
from tests.helpers.paths import DATA

CUBE, CYLINDER, SPHERE, CAPSULE = range(4)
FLOOR_HUE, WALL_HUE, OBJECT_HUE = range(3)
SKY = torch.tensor([153, 226, 249], dtype=torch.uint8)
FRAMES = DATA / "shapes3d_frames.npz"
# Every scale, shape and orientation, under hues of floor, wall and object that differ in every channel.
GRID = torch.cartesian_prod(*map(torch.tensor, ([4], [7], [1])), *map(torch.arange, (8, 4, 15)))


@pytest.fixture(scope="module")
def renderer() -> Shapes3DRenderer:
    return Shapes3DRenderer()


def with_factor(factors: Tensor, column: int, value: int) -> Tensor:
    factors = factors.clone()
    factors[:, column] = value
    return factors


def painted(renderer: Shapes3DRenderer, factors: Tensor, column: int) -> Tensor:
    """Pixels whose colour follows a hue, (B, 64, 64)."""
    # Of red and cyan, each lights the channels that the other leaves dark.
    return (renderer.draw(with_factor(factors, column, 0)) != renderer.draw(with_factor(factors, column, 5))).any(1)


def inside(shape: int, point: Tensor) -> Tensor:
    """Whether points are inside a solid of scale 1, from its definition."""
    x, y, z = point.unbind(-1)
    across = torch.hypot(x, y)
    if shape == CUBE:
        return (torch.maximum(x.abs(), y.abs()) < 1) & (z > 0) & (z < 2)
    if shape == CYLINDER:
        return (across < 1.064) & (z > 0) & (z < 2.149)
    radius, length = (1.283, 0.0) if shape == SPHERE else (0.913, 1.887)
    return torch.hypot(across, z - z.clamp(radius, radius + length)) < radius


@pytest.mark.parametrize("shape", range(4))
def test_rays_enter_a_solid_where_its_inside_begins(shape: int) -> None:
    generator = torch.Generator().manual_seed(shape)
    origin = torch.randn(2000, 3, generator=generator, dtype=torch.float64) * 2 + torch.tensor([0.0, 0.0, 6.0])
    target = torch.rand(2000, 3, generator=generator, dtype=torch.float64) * 4 - torch.tensor([2.0, 2.0, 0.5])
    steps = torch.linspace(0, 2, 4001, dtype=torch.float64)
    ray = target - origin
    along = inside(shape, origin[:, None] + steps[:, None] * ray[:, None])  # (2000, 4001)
    clear = ~inside(shape, origin)
    distance = geometry.SOLIDS[shape].distance(origin, ray)
    first = steps[along.int().argmax(1)]
    hit = along.any(1) & clear
    assert 300 < hit.sum() < 1700
    assert torch.allclose(distance[hit], first[hit], atol=1e-3)
    # A ray may still graze an edge between two steps.
    assert ((distance > 0) & ~along.any(1) & clear).sum() < 10

    normal = geometry.SOLIDS[shape].normal(origin + distance[:, None] * ray)[hit]
    point = (origin + distance[:, None] * ray)[hit]
    assert torch.allclose(normal.norm(dim=1), torch.ones(len(normal), dtype=torch.float64), atol=1e-6)
    # The normal leads straight out of the body, and no side step that it is square to leads further out than it.
    assert not inside(shape, point + 1e-3 * normal).any()
    assert inside(shape, point - 1e-3 * normal).double().mean() > 0.99
    aside = torch.linalg.cross(normal, torch.randn(len(normal), 3, generator=generator, dtype=torch.float64))
    shifted = point + 1e-3 * aside / aside.norm(dim=1, keepdim=True) - 1e-4 * normal
    assert inside(shape, shifted).double().mean() > 0.98


def test_images(renderer: Shapes3DRenderer) -> None:
    factors = GRID[::37]
    images = renderer.draw(factors)
    assert images.shape == (len(factors), 3, 64, 64)
    assert images.dtype == torch.uint8
    assert torch.equal(images, torch.cat([renderer.draw(row[None]) for row in factors]))
    assert torch.equal(images, Shapes3DRenderer().draw(factors))
    assert renderer.draw(factors[:0]).shape == (0, 3, 64, 64)


def test_each_hue_paints_its_surface_alone(renderer: Shapes3DRenderer) -> None:
    sky = (renderer.draw(GRID) == SKY[:, None, None]).all(1)
    surfaces = torch.stack([sky, *(painted(renderer, GRID, hue) for hue in (FLOOR_HUE, WALL_HUE, OBJECT_HUE))])
    assert bool((surfaces.sum(0) == 1).all())
    assert bool(sky[:, :5].all())
    assert not sky[:, 40:].any()


@pytest.mark.parametrize("hue", [FLOOR_HUE, WALL_HUE, OBJECT_HUE])
def test_hues_differ_in_every_scene(renderer: Shapes3DRenderer, hue: int) -> None:
    images = [renderer.draw(with_factor(GRID[::7], hue, value)).flatten(1) for value in range(10)]
    for i in range(10):
        for j in range(i):
            assert bool((images[i] != images[j]).any(1).all())


@pytest.mark.parametrize("hue", range(10))
def test_a_shadow_is_the_hue_in_ambient_light(renderer: Shapes3DRenderer, hue: int) -> None:
    image = renderer.draw(torch.tensor([[hue, 5, 5, 7, SPHERE, 7]]))[0]
    colour = 255 * geometry.AMBIENT * torch.tensor(colorsys.hsv_to_rgb(hue / 10, 1, 1))
    # Right of where the sphere stands.
    assert torch.allclose(image[:, 54, 40].float(), colour, atol=1.5)


def test_scenes_differ(renderer: Shapes3DRenderer) -> None:
    images = renderer.draw(GRID).flatten(1)
    assert len(images.unique(dim=0)) == 480
    # Neighbours in any factor differ by more than a stray pixel.
    grid = images.view(8, 4, 15, -1)
    for axis in range(3):
        changed = (grid.narrow(axis, 1, grid.shape[axis] - 1) != grid.narrow(axis, 0, grid.shape[axis] - 1)).sum(-1)
        assert changed.min() > 60


@pytest.mark.parametrize("shape", range(4))
def test_silhouettes_grow_with_scale(renderer: Shapes3DRenderer, shape: int) -> None:
    solids = painted(renderer, GRID, OBJECT_HUE).view(8, 4, 15, 64, 64)[:, shape]
    assert not (solids[:-1] & ~solids[1:]).any()
    area = solids.sum((2, 3))
    assert bool((area.diff(dim=0) > 0).all())
    # Area goes with the square of the scale, from 0.75 to 1.25.
    assert area[-1].sum() / area[0].sum() == pytest.approx((5 / 3) ** 2, rel=0.12)


def test_only_the_cube_shows_how_far_the_camera_has_walked(renderer: Shapes3DRenderer) -> None:
    solids = painted(renderer, GRID, OBJECT_HUE).view(8, 4, 15, 64, 64)
    for shape in (CYLINDER, SPHERE, CAPSULE):
        # A pixel on the very edge may go either way.
        assert (solids[:, shape] != solids[:, shape, :1]).sum((2, 3)).max() <= 2
    width = solids[:, CUBE].any(-2).sum(-1)  # (8, 15)
    assert bool((width[:, [0, 14]] > width[:, 7:8] + 1).all())
    # The mirror image of the room is the same room.
    assert (solids != solids.flip(2).flip(-1)).sum((3, 4)).max() <= 2


def test_the_cube_where_it_projects(renderer: Shapes3DRenderer) -> None:
    y, x = painted(renderer, torch.tensor([[4, 7, 1, 7, CUBE, 7]]), OBJECT_HUE)[0].nonzero(as_tuple=True)
    # The front face at scale 1.25 spans 2.5 at a distance of 7.216 - 1.25; a tangent of 1 is 70.52 pixels.
    half = 70.52 * 1.25 / 5.966
    assert (int(x.min()), int(x.max())) == (math.ceil(31.5 - half), math.floor(31.5 + half))
    # Its lower edge is 2.203 - 0.075 below the camera, and its upper one 2.5 higher; the view is 0.234 degrees down.
    tilt = 70.52 * math.tan(math.radians(0.234))
    assert int(y.max()) == pytest.approx(31.5 - tilt + 70.52 * 2.128 / 5.966, abs=1)
    assert int(y.min()) == pytest.approx(31.5 - tilt - 70.52 * 0.372 / 5.966, abs=1)


def test_the_corner_moves_with_orientation(renderer: Shapes3DRenderer) -> None:
    # Row 24 shows nothing but the walls beside the smallest sphere.
    walls = renderer.draw(with_factor(GRID[:15], 4, SPHERE))[:, 2, 24].int()
    jumps, columns = walls.diff(dim=1).abs().max(1)
    seen = []
    for index, (jump, column) in enumerate(zip(jumps.tolist(), columns.tolist(), strict=True)):
        angle = math.radians(-30 + 60 * index / 14)
        side = math.copysign(geometry.SIDE, -angle) if angle else geometry.SIDE
        ahead = geometry.DISTANCE - side * math.sin(angle) + geometry.BACK * math.cos(angle)
        right = side * math.cos(angle) + geometry.BACK * math.sin(angle)
        expected = 32 + 32 / math.tan(math.radians(geometry.FIELD) / 2) * right / ahead
        if 0.5 < expected < 63.5:
            assert column + 1 == pytest.approx(expected, abs=0.6)
            assert jump > 40
            seen.append((index, column))
        else:
            assert jump < 20
    right_corner, left_corner = ([c for i, c in seen if (i < 7) == first] for first in (True, False))
    for corner in (right_corner, left_corner):
        assert len(corner) >= 4
        assert corner == sorted(set(corner))


def test_the_shadow_falls_to_the_right(renderer: Shapes3DRenderer) -> None:
    solids = painted(renderer, GRID, OBJECT_HUE)
    green = renderer.draw(GRID)[:, 1].float()  # of the floor
    dark = painted(renderer, GRID, FLOOR_HUE) & (green < 1.1 * 255 * geometry.AMBIENT)
    dark[:, :45] = False  # the far corner of the floor is dark as well
    columns = torch.arange(64.0)
    centre = (dark.sum(1) * columns).sum(1) / dark.sum((1, 2))
    assert bool((centre > 33).all())
    assert bool((dark.sum((1, 2)) < solids.sum((1, 2))).all())


def test_genuine_frames(renderer: Shapes3DRenderer) -> None:
    with np.load(FRAMES, allow_pickle=False) as data:
        factors, frames = torch.from_numpy(data["factors"]), torch.from_numpy(data["frames"]).int()
    assert set(factors[:, 4].tolist()) == {CUBE, CYLINDER, SPHERE, CAPSULE}
    error = (renderer.draw(factors).int() - frames).abs().float().mean((1, 2, 3))
    assert error.mean() < 3.8
    assert error.max() < 5
    # Of all scenes in the same colours, the right one is the nearest.
    for row, frame in zip(factors, frames, strict=True):
        candidates = torch.cat([row[:3].expand(480, 3), GRID[:, 3:]], 1)
        errors = (renderer.draw(candidates).int() - frame).abs().float().mean((1, 2, 3))
        assert candidates[errors.argmin()].tolist() == row.tolist()


def test_memory(renderer: Shapes3DRenderer) -> None:
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in vars(renderer).values()}
    assert sum(storages.values()) < 2.1e6  # a byte for each pixel of 480 scenes, and a few colours
