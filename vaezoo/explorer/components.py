"""Gradio's components for controls and images."""

from typing import Any

import gradio as gr

from vaezoo.explorer.controls import DECIMALS, Control
from vaezoo.explorer.images import Images


def number_of_image(images: Images | None, title: str, value: int | None) -> Any:
    """The number of an image; not shown where there are none."""
    last = len(images.starts.batch.x) - 1 if images is not None else 0
    return gr.Number(
        value,
        label=f"{title}, 0–{last}",
        minimum=0,
        maximum=last,
        precision=0,
        visible=images is not None,
        min_width=160,
    )


def mover(control: Control, value: float) -> Any:
    """A slider, or a picker of classes."""
    if control.classes:
        choices = [(str(k), k) for k in range(control.classes)]
        return gr.Radio(choices, value=int(value), label=control.text, elem_id=control.name, elem_classes="picker")
    low, high = control.reach(value)
    return gr.Slider(low, high, value, step=10**-DECIMALS, label=control.text, elem_id=control.name, buttons=[])


def moved_to(control: Control, value: float) -> Any:
    """The same at another value, its span widened to hold it."""
    if control.classes:
        return gr.Radio(value=int(value))
    low, high = control.reach(value)
    return gr.Slider(minimum=low, maximum=high, value=value)


def group_title(control: Control) -> str:
    """What stands above the controls of a latent group."""
    if control.classes:
        return f"{control.latent}: classes"
    ranked = ", largest KL first" if control.nats else ""
    return f"{control.latent}: {'labels' if control.is_label else 'units'}{ranked}"
