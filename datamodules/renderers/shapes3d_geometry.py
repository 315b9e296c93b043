"""The scene of 3DShapes: a solid on the floor of a room, seen by a camera that walks around it.

The constants are fitted to 50 frames of the genuine dataset. The unit of length is half the edge of the cube at scale
1. The solid stands at the origin; at orientation 0, x points to the right, y away from the camera and z up.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import one_hot

SIZE = 64
FLOOR, WALL, DULL, GLOSSY, SKY = range(5)  # surfaces; the glossy part of a solid is the one that faces the lamp

DISTANCE, HEIGHT, PITCH, FIELD = 7.216, 2.203, 0.234, 48.818  # of the camera; its angles in degrees
BACK, SIDE, TOP = 10.42, 10.166, 5.937  # of the walls
BASE = (0.0, 0.0, 0.075)  # of the solid
LAMP = (-4.162, -0.097, 22.354)
BEAM, FALLOFF = (0.0, 0.0668, -0.9978), 11.814  # axis of the lamp; power of the cosine to it
AMBIENT, HEADLIGHT, LAMPLIGHT = 0.367, 0.574, 0.945


class Solid(Protocol):
    """A convex body of scale 1 on the plane z = 0."""

    def distance(self, origin: Tensor, ray: Tensor) -> Tensor:
        """Multiple of a ray at which it enters the body, NaN where it misses: (..., 3), (..., 3) -> (...)."""

    def normal(self, point: Tensor) -> Tensor:
        """Outward unit normal at a point of the surface: (..., 3) -> (..., 3)."""


class Cube:
    """A cube of edge 2 along the axes."""

    def distance(self, origin: Tensor, ray: Tensor) -> Tensor:
        """As in `Solid`: the last of the entries between opposite faces, if before the first of the exits."""
        low = torch.tensor([-1.0, -1.0, 0.0])
        one, other = (low - origin) / ray, (low + 2 - origin) / ray
        enter, leave = torch.minimum(one, other).amax(-1), torch.maximum(one, other).amin(-1)
        return torch.where(enter < leave, enter, torch.nan)

    def normal(self, point: Tensor) -> Tensor:
        """As in `Solid`: the face is the one furthest from the centre."""
        offset = point - torch.tensor([0.0, 0.0, 1.0])
        return one_hot(offset.abs().argmax(-1), 3) * offset.sign()


@dataclass(frozen=True)
class Cylinder:
    """An upright cylinder."""

    radius: float
    height: float

    def distance(self, origin: Tensor, ray: Tensor) -> Tensor:
        """As in `Solid`: by the side, or by the end next to where the ray enters the endless cylinder."""
        side = _enter(origin[..., :2], ray[..., :2], self.radius)
        z = origin[..., 2] + side * ray[..., 2]
        level = z.clamp(0, self.height)
        end = (level - origin[..., 2]) / ray[..., 2]
        across = (origin + end[..., None] * ray)[..., :2].norm(dim=-1)
        return torch.where(z == level, side, torch.where(across < self.radius, end, torch.nan))

    def normal(self, point: Tensor) -> Tensor:
        """As in `Solid`, but for the lower end, which nobody sees."""
        up = torch.tensor([0.0, 0.0, 1.0])
        return torch.where(point[..., 2:] < self.height - 1e-4, point * (1 - up) / self.radius, up)


@dataclass(frozen=True)
class Capsule:
    """An upright capsule; with length 0, a sphere."""

    radius: float
    length: float = 0.0

    def distance(self, origin: Tensor, ray: Tensor) -> Tensor:
        """As in `Solid`: by the ball next to where the ray enters the endless cylinder."""
        side = _enter(origin[..., :2], ray[..., :2], self.radius)
        return _enter(origin - self._centre(origin + side[..., None] * ray), ray, self.radius)

    def normal(self, point: Tensor) -> Tensor:
        """As in `Solid`."""
        return (point - self._centre(point)) / self.radius

    def _centre(self, point: Tensor) -> Tensor:
        """Centre of the ball next to a point, of those that make up the capsule."""
        z = point[..., 2:].clamp(self.radius, self.radius + self.length)
        return torch.cat([torch.zeros_like(point[..., :2]), z], -1)


SOLIDS: tuple[Solid, ...] = (Cube(), Cylinder(1.064, 2.149), Capsule(1.283), Capsule(0.913, 1.887))


def view(solid: Solid, scales: Tensor, degrees: float) -> tuple[Tensor, Tensor]:
    """What the camera sees in each pixel, for every scale of a solid.

    Args:
        solid: Body in the room.
        scales: Its sizes, (S,).
        degrees: Orientation: how far the camera has walked around the solid, anticlockwise.

    Returns:
        Surfaces, int64 (S, 4096), and how brightly they are lit, 1 for their own colour, (S, 4096).
    """
    scale, base = scales[:, None, None], torch.tensor(BASE)
    eye, rays, backward = _camera(math.radians(degrees))
    room, surface, inward = _room(eye, rays)  # (4096,), (4096,), (4096, 3)
    wall = eye + room[:, None] * rays
    light, lamp, towards = _light(wall, inward, backward)
    shadow = solid.distance((wall - base) / scale, towards) > 0  # (S, 4096)

    # A ray meets the solid k times as far away as one from an origin k times nearer meets the solid of scale 1.
    hit = scales[:, None] * solid.distance((eye - base) / scale, rays)
    point = eye + hit[..., None] * rays  # (S, 4096, 3)
    own_light, own_lamp, _ = _light(point, solid.normal((point - base) / scale), backward)
    front = hit < room
    shade = torch.where(front, own_light + own_lamp, light + lamp * ~shadow)
    return torch.where(front, torch.where(own_lamp > 0, GLOSSY, DULL), surface), shade


def _enter(origin: Tensor, ray: Tensor, radius: float) -> Tensor:
    """Where rays enter the ball about 0, or the disk in two dimensions; NaN where they miss it."""
    a, b, c = ray.square().sum(-1), (origin * ray).sum(-1), origin.square().sum(-1) - radius**2
    return (-b - (b.square() - a * c).sqrt()) / a


def _camera(angle: float) -> tuple[Tensor, Tensor, Tensor]:
    """Position of the camera (3,), a ray for each pixel (4096, 3), and the direction opposite to its view (3,)."""
    sin, cos = math.sin(angle), math.cos(angle)
    pitch = math.radians(PITCH)
    right = torch.tensor([cos, sin, 0.0])
    forward = torch.tensor([-sin * math.cos(pitch), cos * math.cos(pitch), -math.sin(pitch)])
    up = torch.linalg.cross(right, forward)
    pixels = ((torch.arange(SIZE) + 0.5) / SIZE * 2 - 1) * math.tan(math.radians(FIELD) / 2)
    rays = forward + pixels[None, :, None] * right - pixels[:, None, None] * up
    return torch.tensor([sin * DISTANCE, -cos * DISTANCE, HEIGHT]), rays.flatten(0, 1), -forward


def _room(eye: Tensor, rays: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Multiple of each ray at which it meets the room, the surface there and its normal."""
    inward = torch.tensor([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    height = inward @ eye + torch.tensor([0.0, BACK, SIDE, SIDE])  # of the camera over the floor and three walls
    fall = -rays @ inward.T
    distance, plane = torch.where(fall > 0, height / fall, torch.inf).min(-1)
    z = eye[2] + distance * rays[:, 2]
    return distance, torch.where(plane == 0, FLOOR, torch.where(z < TOP, WALL, SKY)), inward[plane]


def _light(point: Tensor, normal: Tensor, backward: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Light everywhere and from the camera (...), light of the lamp (...) and the direction to the lamp (..., 3)."""
    towards = torch.tensor(LAMP) - point
    towards = towards / towards.norm(dim=-1, keepdim=True)
    beam = (towards @ -torch.tensor(BEAM)).clamp(min=0) ** FALLOFF
    lamp = LAMPLIGHT * beam * (normal * towards).sum(-1).clamp(min=0)
    return AMBIENT + HEADLIGHT * (normal @ backward).clamp(min=0), lamp, towards
