"""What a page shows, as HTML: pictures as data URIs, so that nothing is left on disk, and every name escaped."""

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape

import torch
from torch import Tensor
from torch.nn.functional import interpolate
from torchvision.transforms.functional import to_pil_image

from vaezoo.explorer.explorer import Explorer
from vaezoo.explorer.starts import Neighbour, Start, Values
from vaezoo.pictures.figures import write_gif
from vaezoo.pictures.grids import grid
from vaezoo.pictures.picture import Animation

LARGE = 384  # pixels that a picture has at least, by a whole factor
MEDIUM = 192  # of an animation
LETTERS = 28  # that fit above it


def pictures_html(explorer: Explorer, values: Values) -> str:
    """The picture of each model, its decoded labels below it, with links to save them; several have their names."""
    figures = []
    for name, (image, labels) in zip(explorer.names, explorer.decoded(values), strict=True):
        source = png(image)
        link = f'<a class="save" download="{escape(_file_name(name))}.png" href="{source}">save picture</a>'
        names = explorer.label_names(len(labels))
        told = "".join(_label_html(label, p) for label, p in zip(names, labels, strict=True))
        shown = f"<span>{escape(name)}</span>" if len(explorer.names) > 1 else ""  # one's is the title of the page
        caption = f"<figcaption>{shown}{link}</figcaption>{told}"
        figures.append(f'<figure><img alt="decoded by {escape(name)}" src="{source}">{caption}</figure>')
    return f'<div class="pictures">{"".join(figures)}</div>'


def start_html(start: Start, title: str = "Start") -> str:
    """A start: its name, its image and what is known of it."""
    image = "" if start.image is None else f'<img alt="{escape(start.name)}" src="{png(start.image[0], 1)}">'
    return (
        f'<div class="start">{image}<div><b>{title}: {escape(start.name)}</b>{_factors_html(start.factors)}</div></div>'
    )


def neighbours_html(neighbours: Sequence[Neighbour]) -> str:
    """Training images that are near, with their factors."""
    cards = [
        f'<figure><img alt="training image" src="{png(image, 1)}">'
        f"<figcaption>distance {distance:.2f}{_factors_html(factors)}</figcaption></figure>"
        for image, distance, factors in neighbours
    ]
    return f'<div class="neighbours">{"".join(cards)}</div>' if cards else ""


def walk_html(explorer: Explorer, values: Values, unit: int) -> str:
    """An animation of one control that goes from end to end and back, with a link to save it."""
    control = explorer.controls[unit]
    source = _uri("gif", gif(explorer.walk(values, unit), explorer.names))
    link = f'<a class="save" download="{control.name}.gif" href="{source}">save GIF</a>'
    image, title = f'<img alt="a walk" src="{source}">', escape(control.title)
    return f'<figure class="walk">{image}<figcaption>{title} {link}</figcaption></figure>'


def gif(walks: Tensor, names: Sequence[str]) -> bytes:
    """Walks of models (models, S, C, H, W) side by side, there and back, as a GIF file; several have their names."""
    columns = [name if len(name) <= LETTERS else f"…{name[1 - LETTERS :]}" for name in names]
    frames = [
        grid([_enlarged(images, MEDIUM)], columns=columns if len(names) > 1 else ()).pixels()
        for images in walks.unbind(1)
    ]
    file = io.BytesIO()
    write_gif(Animation(torch.stack([*frames, *frames[-2:0:-1]])), file)
    return file.getvalue()


def png(image: Tensor, least: int = LARGE) -> str:
    """An image (C, H, W) in [0, 1] as a data URI, its pixels enlarged by a whole factor to `least` or more."""
    file = io.BytesIO()
    to_pil_image(_enlarged(image[None], least)[0].mul(255).round().byte()).save(file, "PNG", compress_level=1)
    return _uri("png", file.getvalue())


def _enlarged(images: Tensor, least: int) -> Tensor:
    return interpolate(images, scale_factor=max(1, -(-least // min(images.shape[2:]))), mode="nearest")


def _label_html(name: str, probabilities: Tensor) -> str:
    """Name of a decoded label, and a bar for each class."""
    bars = "".join(f'<i style="--p:{p:.0%}" title="{k}: {p:.1%}"></i>' for k, p in enumerate(probabilities))
    best = int(probabilities.argmax())
    told = f"<b>{escape(name)}: {best}</b> <span>{probabilities[best]:.0%}</span>"
    return f'<div class="label"><div>{told}</div><div class="bars">{bars}</div></div>'


def _factors_html(factors: Mapping[str, str] | None) -> str:
    known = "".join(f"<li>{escape(name)} <b>{escape(value)}</b></li>" for name, value in (factors or {}).items())
    return f"<ul>{known}</ul>" if known else ""


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name)


def _uri(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
