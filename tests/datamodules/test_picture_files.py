"""Pictures of any mode, size and depth as bytes of one size, and which files count as pictures."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datamodules.picture_files import Fit, find_pictures, formats, prepared


def pixels(picture: Image.Image, shape: tuple[int, int, int] = (1, 2, 2), fit: Fit = "stretch") -> list[list[int]]:
    return np.asarray(prepared(picture, shape, fit, "black")).tolist()  # type: ignore[no-any-return]


def test_sixteen_bits_lose_their_lower_half_and_are_not_clipped() -> None:
    deep = Image.fromarray(np.array([[0, 255], [256, 65535]], np.uint16))
    assert pixels(deep) == [[0, 0], [1, 255]]
    assert pixels(Image.fromarray(np.array([[0, 25600], [256, 65535]], np.int32))) == [[0, 100], [1, 255]]
    with pytest.raises(ValueError, match="more than 16 bits"):
        pixels(Image.fromarray(np.array([[0, 65536]], np.int32)))


def test_floats_lie_between_0_and_1() -> None:
    assert pixels(Image.fromarray(np.array([[0, 0.5], [1, 0.2]], np.float32))) == [[0, 128], [255, 51]]
    for wrong in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match=r"floats are not in \[0, 1\]"):
            pixels(Image.fromarray(np.array([[wrong, 0]], np.float32)))


def test_what_is_transparent_shows_the_background() -> None:
    red = Image.new("RGBA", (2, 2), (255, 0, 0, 255))
    red.putpixel((0, 0), (255, 0, 0, 0))
    for background, seen in (("black", [0, 0, 0]), ("white", [255, 255, 255])):
        found = np.asarray(prepared(red, (3, 2, 2), "stretch", background))  # type: ignore[arg-type]
        assert found[0, 0].tolist() == seen
        assert found[1, 1].tolist() == [255, 0, 0]


def test_a_palette_with_a_transparent_colour(tmp_path: Path) -> None:
    picture = Image.new("P", (2, 1), 0)
    picture.putpalette([255, 255, 255, 0, 0, 255])
    picture.putpixel((1, 0), 1)
    picture.save(tmp_path / "a.png", transparency=0)
    with Image.open(tmp_path / "a.png") as opened:
        assert opened.mode == "P"
        assert np.asarray(prepared(opened, (3, 1, 2), "stretch", "black")).tolist() == [[[0, 0, 0], [0, 0, 255]]]


def test_photos_are_turned_upright(tmp_path: Path) -> None:
    picture = Image.fromarray(np.array([[10, 20]], np.uint8))  # 2 wide
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: rotate by 270 degrees
    picture.save(tmp_path / "a.png", exif=exif)
    with Image.open(tmp_path / "a.png") as opened:
        assert np.asarray(prepared(opened, (1, 2, 1), "stretch", "black")).tolist() == [[10], [20]]


def test_crop_pad_and_stretch() -> None:
    wide = Image.fromarray(np.array([[0, 0, 100, 100, 200, 200]] * 2, np.uint8))  # 2 high, 6 wide
    assert pixels(wide, (1, 2, 2), "crop") == [[100, 100]] * 2
    assert pixels(wide, (1, 6, 6), "pad")[2:4] == [[0, 0, 100, 100, 200, 200]] * 2
    assert pixels(wide, (1, 6, 6), "pad")[0] == [0] * 6
    assert pixels(wide, (1, 4, 6), "stretch") == [[0, 0, 100, 100, 200, 200]] * 4
    grey = np.asarray(prepared(wide, (1, 6, 6), "pad", "white"))
    assert grey[0].tolist() == [255] * 6


def test_a_thread_of_a_picture_takes_no_memory() -> None:
    thread = Image.new("L", (1, 100_000), 7)
    assert pixels(thread, (1, 64, 64), "crop") == [[7] * 64] * 64


def test_postscript_is_never_opened() -> None:
    assert "EPS" not in formats()
    assert {"PNG", "JPEG", "TIFF", "GIF", "BMP", "WEBP"} <= set(formats())


def test_files_at_any_depth_in_one_order(tmp_path: Path) -> None:
    for name in ("b.PNG", "a/z.jpg", "a/b/c.tiff", "a.txt", ".hidden.png", ".cache/x.png", "x.eps", "labels.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert find_pictures(tmp_path) == ["a/b/c.tiff", "a/z.jpg", "b.PNG"]


def test_folders_without_pictures(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no pictures: put files such as"):
        find_pictures(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere is not there: give the folder of your pictures"):
        find_pictures(tmp_path / "nowhere")


def test_links_to_folders(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "data" / "a").mkdir(parents=True)
    (tmp_path / "data" / "a" / "1.png").touch()
    (tmp_path / "data" / "again").symlink_to(tmp_path / "data" / "a")
    assert find_pictures(tmp_path / "data") == ["a/1.png"]
    (tmp_path / "data" / "more").symlink_to(tmp_path / "other")
    with pytest.raises(ValueError, match="more is a link that leads out of"):
        find_pictures(tmp_path / "data")
