"""Grids hold every image where it belongs; plots show what they are given."""

from io import BytesIO

import pytest
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor

from vaezoo.pictures import curves, grid, heat_maps, matrix, stack
from vaezoo.pictures.grids import CELL, GAP


@pytest.mark.parametrize("channels", [1, 3])
def test_a_grid_holds_every_image_and_fills_up_with_white(channels: int) -> None:
    rows = [torch.rand(3, channels, CELL, CELL + 4), torch.rand(2, channels, CELL, CELL + 4)]
    picture = grid(rows).pixels()
    for i, row in enumerate(rows):
        for j in range(3):
            top, left = GAP + i * (CELL + GAP), GAP + j * (CELL + 4 + GAP)
            cell = picture[:, top : top + CELL, left : left + CELL + 4]
            expected = row[j].expand(3, -1, -1) if j < len(row) else torch.ones(3, CELL, CELL + 4)
            torch.testing.assert_close(cell, expected, atol=1 / 255, rtol=0)


def test_small_images_are_enlarged_by_a_whole_factor() -> None:
    image = torch.rand(1, 1, 20, 20)
    picture = grid([image]).pixels()
    torch.testing.assert_close(picture[0, GAP::3, GAP::3][:20, :20], image[0, 0], atol=1 / 255, rtol=0)


def ink(picture: Tensor) -> Tensor:
    return (picture < 0.9).any(0)


def test_names_stand_beside_their_rows_and_columns_and_are_not_cut_off() -> None:
    white = [torch.ones(4, 3, CELL, CELL)] * 2
    title = "a title much longer than four columns, which must not be cut off at the right"
    picture = grid(white, ["one", "a long name"], ["-2.0", "-1.0", "1.0", "2.0"], title).pixels()
    marks = ink(picture)
    assert marks.any()
    border = torch.cat([marks[0], marks[-1], marks[:, 0], marks[:, -1]])
    assert not border.any()  # text that reaches the border has been cut off
    plain = grid(white).pixels()
    assert picture.shape[1] > plain.shape[1]
    assert picture.shape[2] > plain.shape[2]


def test_each_name_stands_beside_its_own_row_or_above_its_own_column() -> None:
    white = [torch.ones(3, 3, CELL, CELL)] * 3
    plain = grid(white).pixels()
    for only in range(3):
        names = ["name" if i == only else "" for i in range(3)]
        beside, above = grid(white, names).pixels(), grid(white, (), names).pixels()
        left, top = beside.shape[2] - plain.shape[2], above.shape[1] - plain.shape[1]
        band = slice(only * (CELL + GAP), (only + 1) * (CELL + GAP))
        assert ink(beside)[band, :left].sum() == ink(beside).sum() > 0
        assert ink(above)[:top, band].sum() == ink(above).sum() > 0


def test_a_notebook_shows_the_pixels() -> None:
    picture = grid([torch.rand(3, 3, 64, 64)], ["row"])
    shown = pil_to_tensor(Image.open(BytesIO(picture._repr_png_())))
    assert torch.equal(shown, picture.pixels().mul(255).round().byte())


def test_pictures_stack() -> None:
    narrow, wide = grid([torch.zeros(1, 1, CELL, CELL)] * 2), grid([torch.zeros(3, 1, CELL, CELL)])
    stacked = stack([narrow, wide]).pixels()
    high, across = narrow.pixels().shape[1:]
    assert torch.equal(stacked[:, :high, :across], narrow.pixels())
    assert torch.equal(stacked[:, high:], wide.pixels())
    assert stacked[:, :high, across:].min() == 1


def test_plots_differ_with_their_values() -> None:
    x = torch.arange(4.0)

    def all_plots(values: Tensor) -> list[Tensor]:
        lines = {f"unit {i}": (x, values + i) for i in range(10)}
        plots = [
            curves(lines, "title", "step", "nats", {"capacity": (x, x)}),
            matrix(values.repeat(5, 1), list("abcde"), list("wxyz"), "title", signed=True),
            matrix(values.repeat(5, 1).abs(), list("abcde"), list("wxyz"), "title"),
            heat_maps(values.reshape(1, 2, 2).repeat(6, 1, 1), list("abcdef"), "title"),
        ]
        return [plot.pixels() for plot in plots]

    for one, same, other in zip(all_plots(x), all_plots(x), all_plots(x.flip(0) ** 2), strict=True):
        assert one.shape[0] == 3
        assert 0 <= one.min() <= one.max() <= 1
        assert torch.equal(one, same)
        assert one.shape != other.shape or not torch.equal(one, other)
