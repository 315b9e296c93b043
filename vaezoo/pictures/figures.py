"""Save figures for a paper: PNG, PDF or SVG of any width and resolution, with reproducible bytes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, get_args

import matplotlib
from jsonargparse import ArgumentParser, Namespace
from matplotlib.figure import Figure
from PIL import Image
from torchvision.utils import save_image

from vaezoo.pictures.picture import TEXT, Animation, Figures, Picture, renamed
from vaezoo.pictures.plots import Plot
from vaezoo.runs.files import atomic_write

Format = Literal["png", "pdf", "svg"]
DPI = 300
FRAME = 120  # milliseconds of an animation
CENTIMETRE = 1 / 2.54  # inches
NARROWEST, WIDEST, MOST_DPI, MOST_PIXELS = 0.5, 40.0, 2400, 400_000_000
OTHERS = (".jpg", ".jpeg", ".eps", ".ps", ".gif", ".tif", ".tiff", ".webp", ".bmp")
# What matplotlib would write about time, host and version: without it, the same figure is the same file.
METADATA: dict[Format, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
}
TEXT_AS_TEXT: dict[Any, Any] = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": "vaezoo"}


@dataclass(frozen=True)
class Style:
    """Style of figures in a paper.

    Attributes:
        formats: File formats.
        width: Width in inches. Defaults to each figure's own.
        dpi: Pixels per inch of PNG files, and the minimum for images in PDF and SVG. Defaults to 300, or, for PNG files
            without a width, to the pixels drawn in training.
        title: Whether to draw titles.
        row_names: Names of rows: all of them in order, or OLD=NEW each.
    """

    formats: tuple[Format, ...] = ("png",)
    width: float | None = None
    dpi: int | None = None
    title: bool = True
    row_names: tuple[str, ...] = ()

    def save(self, drawn: Figures, output: Path) -> list[Path]:
        """Write pictures; animations, as GIF, beside PNG files alone.

        Args:
            drawn: What is drawn; a name with a slash is a detail of another picture.
            output: A folder, or a file for the only picture that is no detail.

        Returns:
            The files.
        """
        pictures = self._styled({name: one for name, one in drawn.items() if isinstance(one, Picture)})
        if names_file(output):
            chosen = [name for name in pictures if "/" not in name]
            if len(chosen) > 1:
                found = f"{len(chosen)} figures ({', '.join(chosen[:4])}{', …' if chosen[4:] else ''})"
                raise ValueError(f"--output {output} is one file, and there are {found}: choose one, or name a folder")
            return [self._save(pictures[chosen[0]], output, self.formats[0])]
        files = [self._save(one, output / f"{name}.{f}", f) for name, one in pictures.items() for f in self.formats]
        animated = {name: one for name, one in drawn.items() if isinstance(one, Animation) and "png" in self.formats}
        return files + [_save_animation(one, output / name) for name, one in animated.items()]

    def _styled(self, pictures: Mapping[str, Picture]) -> dict[str, Picture]:
        rows = {name: [row for part in one.parts for row in part.names] for name, one in pictures.items()}
        names = rename_rows(rows, self.row_names)
        return {name: renamed(one, self.title, names[name]) for name, one in pictures.items()}

    def _save(self, picture: Picture, path: Path, suffix: Format) -> Path:
        with atomic_write(path) as draft:
            if suffix == "png" and self.width is None and self.dpi is None:
                save_image(picture.pixels(), draft, format="png")
            else:
                with matplotlib.rc_context({**TEXT_AS_TEXT, **({"font.size": TEXT} if self.width else {})}):
                    figure = painted(picture, self.width or picture.width(), self.dpi or DPI)
                    figure.savefig(draft, format=suffix, metadata=METADATA[suffix])
        return path


def painted(picture: Picture, width: float, dpi: int) -> Figure:
    """A picture as a figure of matplotlib.

    Raises:
        ValueError: It would have more pixels than a machine holds.
    """
    heights = [part.height(width) for part in picture.parts]
    if width * sum(heights) * dpi**2 > MOST_PIXELS:
        size = f"{width:.4g} × {sum(heights):.4g} inches"
        raise ValueError(f"--dpi {dpi}: {size} have too many pixels, use a smaller --width or --dpi")
    layout: Any = "constrained" if any(isinstance(part, Plot) for part in picture.parts) else None
    figure = Figure(figsize=(width, sum(heights)), layout=layout, dpi=dpi)
    if len(heights) == 1:
        picture.parts[0].paint(figure, width, dpi)
    else:
        places: Any = figure.subfigures(len(heights), 1, hspace=0, height_ratios=heights)
        for place, part in zip(places, picture.parts, strict=True):
            part.paint(place, width, dpi)
    return figure


def rename_rows(rows: Mapping[str, list[str]], given: Sequence[str]) -> Mapping[str, list[str]]:
    """Rename rows.

    Args:
        rows: Names of the rows of each picture; what follows two spaces, as nats do, is no part of a name.
        given: OLD=NEW each; or names in order, for pictures with as many rows.

    Raises:
        ValueError: No row is called so, or no picture has as many rows.
    """
    there = dict.fromkeys(name.split("  ")[0] for names in rows.values() for name in names)
    if given and all("=" in name for name in given):
        new = dict(name.split("=", 1) for name in given)
        if unknown := [old for old in new if old not in there]:
            raise ValueError(f"--row_names {unknown[0]}: no row is called so, there are {', '.join(there) or 'none'}")
        return {name: [new.get(old.split("  ")[0], old) for old in names] for name, names in rows.items()}
    counts = sorted({len(names) for names in rows.values()})
    if given and len(given) not in counts:
        raise ValueError(f"--row_names: {len(given)} names, and the figures have {' or '.join(map(str, counts))} rows")
    return {name: list(given) if len(names) == len(given) else names for name, names in rows.items()}


def names_file(output: Path) -> bool:
    """Whether an --output is a file, as its suffix says.

    Raises:
        ValueError: Its suffix is that of a format that is not written.
    """
    suffix = output.suffix.lower()
    if suffix in OTHERS and not output.is_dir():
        raise ValueError(f"--output {output}: figures are {', '.join(get_args(Format))} files")
    return suffix[1:] in get_args(Format) and not output.is_dir()


def inches(width: str) -> float:
    """A width such as 3.3, 3.3in or 8.5cm.

    Raises:
        ValueError: It is none, or no figure is as narrow or as wide.
    """
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) ?(in|cm|)", width)
    found = float(match[1]) * (CENTIMETRE if match[2] == "cm" else 1.0) if match else 0.0
    if not NARROWEST <= found <= WIDEST:
        raise ValueError(f"--width {width}: give {NARROWEST} to {WIDEST:g} inches, for example 3.3, 3.3in or 8.5cm")
    return found


def add_style_options(parser: ArgumentParser, default: Style | None = None) -> None:
    """Options of every command that draws.

    Args:
        parser: Its parser.
        default: Formats and pixels by default; None takes the format of --output, or png.
    """
    formats = list(default.formats) if default else None
    said = " ".join(formats) if formats else "the suffix of --output, else png"
    add = parser.add_argument
    add("--format", nargs="+", type=Format, default=formats, help=f"png, pdf or svg. Defaults to {said}.")
    add("--width", type=str | None, help="Width in inches, or with a unit: 3.3, 8.5cm. Text is set in 8 pt.")
    add(
        "--dpi",
        type=int | None,
        default=default and default.dpi,
        help=f"Pixels per inch of PNG files and of images in PDF and SVG. Defaults to {DPI} with --width.",
    )
    add("--title", type=bool, default=True, help="Whether to draw titles.")


def style_of(options: Namespace, output: Path | None = None) -> Style:
    """The style that `add_style_options` has read.

    Args:
        options: All options of the command.
        output: Its --output, where that may be a file.

    Raises:
        ValueError: Options that do not go together.
    """
    formats = options.format
    if output is not None and names_file(output):
        suffix = output.suffix.lower()[1:]
        if formats not in (None, [suffix]):
            raise ValueError(f"--format {' '.join(formats)}: --output {output} is a file, of format {suffix}")
        formats = [suffix]
    if options.dpi is not None and not 1 <= options.dpi <= MOST_DPI:
        raise ValueError(f"--dpi must be 1 to {MOST_DPI}, not {options.dpi}")
    width = None if options.width is None else inches(options.width)
    names = tuple(options.get("row_names") or ())
    return Style(tuple(dict.fromkeys(formats or ["png"])), width, options.dpi, options.title, names)


def _save_animation(animation: Animation, path: Path) -> Path:
    with atomic_write(path) as draft:
        write_gif(animation, draft)
    return path


def write_gif(animation: Animation, file: Path | IO[bytes]) -> None:
    """Write an animation that goes on for ever."""
    pictures = [Image.fromarray(frame.mul(255).byte().permute(1, 2, 0).numpy()) for frame in animation.frames]
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=FRAME, loop=0)
