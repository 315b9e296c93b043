"""The page of `vaezoo explore`, in Gradio: where things are, and which function of `Explorer` each of them calls.

All state is in the values of the sliders and in the start, so that a moved slider decodes one code and no more.
"""

import secrets
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import gradio as gr

from vaezoo.explorer.components import group_title, moved_to, mover, number_of_image
from vaezoo.explorer.drawing import neighbours_html, pictures_html, start_html, walk_html
from vaezoo.explorer.explorer import Explorer
from vaezoo.explorer.starts import Start, Values
from vaezoo.pictures.subjects import FORMATS

CSS = Path(__file__).with_name("page.css")
THEME = gr.themes.Default(primary_hue="blue", font=["sans-serif"], font_mono=["monospace"])  # no font is fetched
UNKNOWN = "unknown"
UPLOADS = (600, 3600)  # seconds: how often uploaded pictures are looked at, and how old they get
SUFFIXES = [f".{name.lower()}" for name in (*FORMATS, "JPG")]
NARROW: dict[str, Any] = {"size": "sm", "min_width": 120}
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private", "concurrency_id": "answers"}
"""Without a sign of waiting; all answers come one after the other."""
LIVE: dict[str, Any] = {**QUIET, "trigger_mode": "always_last"}
"""While one answer is on its way, only the last of further movements is kept."""


class Page:
    """The page of an explorer: `blocks` is what Gradio serves."""

    def __init__(self, explorer: Explorer, title: str) -> None:
        self.explorer = explorer
        self.first = explorer.image(0) if explorer.images is not None else explorer.middle()
        with gr.Blocks(title=title, analytics_enabled=False, fill_width=True, delete_cache=UPLOADS) as self.blocks:
            self.start = gr.State(self.first)
            gr.HTML(f'<h1 class="title">{title}</h1>', padding=False)
            with gr.Row(equal_height=False, elem_id="explorer"):
                with gr.Column(scale=5, min_width=320, elem_id="seen"):
                    self._add_pictures()
                with gr.Column(scale=4, min_width=320, elem_id="moved"):
                    self._add_starts()
                    self._add_controls()
                    self._add_neighbours()
                    self._add_transfer()
                    self._add_walk()
            self._connect()

    def _add_pictures(self) -> None:
        shown = pictures_html(self.explorer, self.first.values)
        self.pictures = gr.HTML(shown, elem_id="pictures", padding=False)
        self.origin = gr.HTML(start_html(self.first), elem_id="start", padding=False)

    def _add_starts(self) -> None:
        images, names = self.explorer.images, self.explorer.names
        with gr.Column(elem_id="starts", variant="panel"):
            with gr.Row(equal_height=True, elem_classes="buttons"):
                self.number = number_of_image(images, "Image", 0)
                self.random = gr.Button("Random image", visible=images is not None, **NARROW)
                self.upload = gr.UploadButton("Your picture …", file_types=SUFFIXES, **NARROW)
                self.draw = gr.Button("Draw from the prior", **NARROW)
                self.middle = gr.Button("Middle of the prior", **NARROW)
                self.reset = gr.Button("Back to the start", **NARROW)
            choices = [(name, i) for i, name in enumerate(names)]
            self.lead = gr.Dropdown(choices, value=0, label="Images are encoded by", visible=len(names) > 1)
            with gr.Row():
                self.weak = [
                    gr.Dropdown([UNKNOWN, *map(str, range(size))], label=f"Weak label: {name}", **chosen)
                    for (name, size), chosen in zip(
                        self.explorer.weak_labels.items(), self._weak(self.first), strict=True
                    )
                ]

    def _add_controls(self) -> None:
        self.controls: list[Any] = []
        pairs = list(zip(self.explorer.controls, self.first.values, strict=True))
        none_used = not any(control.is_used for control, _ in pairs)  # shows them all
        for latent, units in groupby(pairs, key=lambda pair: pair[0].latent):
            chosen = list(units)
            used = sum(control.is_used for control, _ in chosen)  # ranked: unused ones come last
            if used:
                with gr.Accordion(group_title(chosen[0][0]), elem_classes="units"), gr.Row():
                    self.controls += [mover(*pair) for pair in chosen[:used]]
            if chosen[used:]:
                title = f"{latent}: {len(chosen) - used} unused"
                with gr.Accordion(title, open=none_used, elem_classes="units"), gr.Row():
                    self.controls += [mover(*pair) for pair in chosen[used:]]

    def _add_neighbours(self) -> None:
        with gr.Accordion("Nearest training images", visible=self.explorer.images is not None, elem_id="near"):
            found = self.explorer.nearest(self.first.values)
            self.neighbours = gr.HTML(neighbours_html(found), padding=False)

    def _add_transfer(self) -> None:
        images = self.explorer.images
        donor = None if images is None else self.explorer.image(min(1, len(images.starts.batch.x) - 1))
        self.donor = gr.State(donor)
        with gr.Accordion("Transfer from another image", open=False, elem_id="transfer"):
            with gr.Row(equal_height=True):
                self.donor_number = number_of_image(images, "Image B", donor.number if donor else None)
                self.donor_upload = gr.UploadButton("Your picture …", file_types=SUFFIXES, **NARROW)
            choices = [(title, name) for name, title in self.explorer.parts.items()]
            self.parts = gr.CheckboxGroup(choices, label="From B; all else from the start")
            self.donor_seen = gr.HTML(start_html(donor, "B") if donor else "", padding=False)

    def _add_walk(self) -> None:
        with gr.Accordion("Save a walk as a GIF", open=False, elem_id="walk"):
            with gr.Row(equal_height=True):
                choices = [(control.title, i) for i, control in enumerate(self.explorer.controls)]
                self.unit = gr.Dropdown(choices, value=0, label="Unit", min_width=120)
                self.make = gr.Button("Make GIF", **NARROW)
            self.gif = gr.HTML(padding=False)

    def _connect(self) -> None:
        self.moved, self.seen = [self.lead, *self.controls], [self.pictures, self.neighbours]
        moved, seen = self.moved, self.seen
        pairs = list(zip(self.explorer.controls, self.controls, strict=True))
        sliders = [component.input for control, component in pairs if not control.classes]
        if sliders:
            gr.on(sliders, self.show, moved, seen, **LIVE)
        for i, (control, component) in enumerate(pairs):
            if control.classes:
                self._settle(component.input(partial(self.choose, i), moved, [*self.controls, *seen], **LIVE))
        everything = [self.start, self.origin, self.number, *self.weak, *self.controls, *seen]
        self._on(self.number.input, lambda lead, n: self.explorer.image(_whole(n), lead), [self.number], everything)
        self._on(self.random.click, lambda lead: self.explorer.image(self._any(), lead), [], everything)
        self._on(self.draw.click, lambda lead: self.explorer.draw(secrets.randbits(32), lead), [], everything)
        self._on(self.middle.click, self.explorer.middle, [], everything)
        self._on(self.upload.upload, lambda lead, f: self.explorer.upload(Path(f), lead), [self.upload], everything)
        self._on(self.reset.click, lambda lead, start: start, [self.start], everything)
        self._on(self.lead.input, lambda lead, start: self.explorer.encoded(start, lead), [self.start], everything)
        for component in self.weak:
            self._on(component.input, self.relabel, [self.start, *self.weak], everything)
        given = [self.lead, self.start, self.parts]
        changed = [self.donor, self.donor_seen, *self.controls, *seen]
        self._settle(self.donor_number.input(self.take_image, [self.donor_number, *given], changed, **LIVE))
        self._settle(self.donor_upload.upload(self.take_upload, [self.donor_upload, *given], changed, **QUIET))
        self._settle(self.parts.input(self.take, [self.donor, *given], changed, **LIVE))
        self.make.click(self.animate, [self.unit, *self.controls], self.gif, api_visibility="private")

    def _on(self, event: Callable[..., Any], begin: Callable[..., Start], inputs: Sequence[Any], outputs: Any) -> None:
        """Let an event choose another start."""
        self._settle(event(partial(self.begin, begin), [self.lead, *inputs], outputs, **LIVE))

    def _settle(self, moving: Any) -> None:
        """Once sliders are moved, show where they are: a late answer to a dragged one may have come in between."""
        moving.success(self.show, self.moved, self.seen, **LIVE)

    def begin(self, begin: Callable[..., Start], lead: int, *inputs: Any) -> list[Any]:
        """Everything that changes with the start."""
        start = _or_error(begin, lead, *inputs)
        weak = [gr.Dropdown(**chosen) for chosen in self._weak(start)]
        return [start, start_html(start), start.number, *weak, *self._at(start.values, lead)]

    def show(self, lead: int, *values: float) -> list[Any]:
        """Pictures and neighbours at values of the controls."""
        return [pictures_html(self.explorer, values), neighbours_html(self.explorer.nearest(values, lead=lead))]

    def choose(self, picker: int, lead: int, *values: float) -> list[Any]:
        """Everything that changes with a class."""
        return self._at(self.explorer.chosen(values, picker, lead), lead)

    def relabel(self, lead: int, start: Start, *weak: str) -> Start:
        """The start, encoded with other weak labels."""
        return self.explorer.relabelled(start, [None if k == UNKNOWN else int(k) for k in weak], lead)

    def take_image(self, number: float | None, lead: int, start: Start, parts: list[str]) -> list[Any]:
        """Take parts from an image of the data."""
        return self.take(_or_error(self.explorer.image, _whole(number), lead), lead, start, parts)

    def take_upload(self, file: str, lead: int, start: Start, parts: list[str]) -> list[Any]:
        """Take parts from a picture of one's own."""
        return self.take(_or_error(self.explorer.upload, Path(file), lead), lead, start, parts)

    def take(self, donor: Start | None, lead: int, start: Start, parts: list[str]) -> list[Any]:
        """Everything that changes with a transfer."""
        if donor is None:
            raise gr.Error("Choose image B first.")
        donor = self.explorer.encoded(donor, lead)
        values = self.explorer.transferred(start.values, donor.values, parts)
        return [donor, start_html(donor, "B"), *self._at(values, lead)]

    def animate(self, unit: int, *values: float) -> str:
        """A walk along a unit."""
        return walk_html(self.explorer, values, unit)

    def _at(self, values: Values, lead: int) -> list[Any]:
        """Controls at values, and what they show."""
        return [*map(moved_to, self.explorer.controls, values), *self.show(lead, *values)]

    def _weak(self, start: Start) -> list[dict[str, Any]]:
        """What the pickers of weak labels show: an encoder reads them beside an image alone."""
        there = start.image is not None
        return [
            {"value": UNKNOWN if k is None else str(k), "interactive": there} for k in self.explorer.weak_classes(start)
        ]

    def _any(self) -> int:
        return secrets.randbelow(len(self.explorer.images.starts.batch.x)) if self.explorer.images is not None else 0


def _whole(number: float | None) -> int:
    return -1 if number is None else int(number)


def _or_error(function: Callable[..., Start], *args: Any) -> Start:
    """A start, or what is wrong as a message on the page."""
    try:
        return function(*args)
    except ValueError as error:
        raise gr.Error(str(error), print_exception=False) from error
