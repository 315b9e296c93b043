"""`vaezoo traverse`: pictures of what each latent unit changes."""

from collections.abc import Sequence
from pathlib import Path

import torch
from jsonargparse import ArgumentParser
from lightning.pytorch import LightningDataModule
from PIL import Image
from torch import Tensor
from torchvision.utils import save_image

from vaezoo.models.base import VAE
from vaezoo.pictures.callback import column_names
from vaezoo.pictures.grids import grid
from vaezoo.runs.data import RunData, split_data_options
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.loading import load
from vaezoo.types import Batch

FRAME = 120  # milliseconds


def run_traverse(args: Sequence[str], data_class: type[LightningDataModule]) -> None:
    """Draw traversals of a checkpoint: one picture and one animation a latent group, and one strip a unit.

    Args:
        args: Command line after `vaezoo traverse`.
        data_class: Base of the datamodules to choose from.
    """
    own, data_args = split_data_options(args)
    options = _parser().parse_args(own)
    model = load(options.ckpt_path)
    run = RunFolder.of(options.ckpt_path)
    folder = Path(options.output) if options.output else run.traversals
    latents = options.latents or model.walkable()
    starts: dict[str, Batch | None] = {"prior": None}
    title = f"{type(model).__name__} · step {int(model.step)}"
    if not options.prior:
        data, _ = RunData(data_class, data_args).of(run)
        starts = {f"image{i}": _image(data, i) for i in options.image_indices}
        title += f" · {type(data).__name__.removesuffix('DataModule')}"
    folder.mkdir(parents=True, exist_ok=True)
    for place, start in starts.items():
        for latent in latents:
            units = options.units or _ranked(model, latent, start)
            span = (options.span[0], options.span[1])
            walks = walk(model, start, latent, units, options.steps, span)
            columns = column_names(model, latent, options.steps, span)
            write(folder / f"{place}_{latent}", walks, columns, f"{title} · {place} · {latent}")
    print(f"traversals: {folder}")


def walk(
    model: VAE, start: Batch | None, latent: str, units: Sequence[int], steps: int, span: tuple[float, float]
) -> dict[str, Tensor]:
    """Images of each unit by its name, (S, C, H, W).

    Args:
        model: The model, in evaluation.
        start: One image to walk from; the middle of the prior where None.
        latent: Latent group.
        units: Units of it, in the order of the rows.
        steps: Values of each continuous unit.
        span: First and last value.
    """
    if outside := [unit for unit in units if not 0 <= unit < model.latents[latent].units]:
        raise ValueError(f"latent {latent!r} has units 0 to {model.latents[latent].units - 1}, not {outside[0]}")
    x, y = (None, None) if start is None else (start.x, start.y)
    walks = model.traverse(x, latent, units, steps, span, y)
    return {f"{latent}{unit}": images[0] for unit, images in zip(units, walks, strict=True)}


def write(stem: Path, walks: dict[str, Tensor], columns: Sequence[str], title: str) -> None:
    """Write `<stem>.png`, `<stem>.gif` and `<stem>/<unit>.png`."""
    save_image(grid(list(walks.values()), list(walks), columns, title), stem.with_suffix(".png"))
    stem.mkdir(exist_ok=True)
    for name, images in walks.items():
        save_image(grid([images], [name], columns), stem / f"{name}.png")
    _animate(walks, stem.with_suffix(".gif"))


def _animate(walks: dict[str, Tensor], path: Path) -> None:
    """All units at once, there and back."""
    frames = []
    for t in range(max(len(images) for images in walks.values())):
        now = torch.stack([images[min(t, len(images) - 1)] for images in walks.values()])
        frames.append(grid([now], columns=list(walks)))
    pictures = [Image.fromarray(frame.mul(255).byte().permute(1, 2, 0).numpy()) for frame in frames]
    pictures += pictures[-2:0:-1]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=FRAME, loop=0)


def _image(data: object, index: int) -> Batch:
    """One image of the evaluation split, by its place in it."""
    split = data.evaluation_split  # type: ignore[attr-defined]
    seen = 0
    for batch, _ in data.evaluation_batches(index + 1, split, 0, torch.device("cpu")):  # type: ignore[attr-defined]
        if index < seen + len(batch.x):
            return Batch(*(field[index - seen : index - seen + 1] for field in batch))
        seen += len(batch.x)
    raise ValueError(f"--image_indices {index}: the data holds {seen} {split} images, 0 to {seen - 1}")


def _ranked(model: VAE, latent: str, start: Batch | None) -> list[int]:
    """All units, those with the largest KL first; in their own order where there is no image to tell."""
    if latent not in model.latents:
        raise ValueError(f"latent {latent!r} is not one of {', '.join(model.latents)}")
    if start is None:
        return list(range(model.latents[latent].units))
    order: list[int] = model.unit_nats(start.x, start.y)[latent].argsort(descending=True).tolist()
    return order


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="vaezoo traverse",
        description="Pictures and animations of what each latent unit changes.",
        epilog="--data NAME and --data.ARG VALUE choose other data than the run's; --data.help NAME lists arguments.",
        exit_on_error=False,
    )
    parser.add_argument("--ckpt_path", type=str, required=True, help="Checkpoint.")
    parser.add_argument("--image_indices", nargs="+", type=int, default=[0], help="Images to walk from, by number.")
    parser.add_argument("--prior", action="store_true", help="Walk from the middle of the prior; no data is read.")
    parser.add_argument("--latents", nargs="+", type=str, help="Latent groups; all that are decoded by default.")
    parser.add_argument("--units", nargs="+", type=int, help="Units; all by default, the most telling first.")
    parser.add_argument("--span", nargs=2, type=float, default=[-2.0, 2.0], help="First and last value.")
    parser.add_argument("--steps", type=int, default=11, help="Values of a continuous unit.")
    parser.add_argument("--output", type=str | None, help="Folder; `traversals` in the run's by default.")
    return parser
