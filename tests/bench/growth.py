"""How time and memory of a training step grow with the batch, latents, image size, labels and ranks.

Every point is a process of its own, which prints one line of JSON.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader

from tests.bench.children import peak_mb, result_of
from tests.bench.timing import compared
from vaezoo.models import TCVAE, LaRVAE
from vaezoo.nn.networks import BurgessNetwork
from vaezoo.types import Batch

WARM, STEPS = 5, 30
PLOT = Path("benchmarks-growth.png")


class Point(NamedTuple):
    """One size of everything; the batch is that of all ranks together."""

    batch: int = 64
    latents: int = 10
    pixels: int = 64
    labels: int = 0
    ranks: int = 1


AXES: dict[str, tuple[int, ...]] = {
    "batch": (16, 64, 256),
    "latents": (10, 50, 200),
    "pixels": (32, 64, 128),
    "labels": (1, 10, 100),
    "ranks": (1, 2),
}
Found = Mapping[Point, list[float]]


class Timed(LightningModule):
    """Notes when its steps end; a callback would read, and so let the model log, what every step has to say."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ends: list[float] = []

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Look at the clock."""
        super().on_train_batch_end(outputs, batch, batch_idx)
        self.ends.append(time.perf_counter())


class TimedTCVAE(Timed, TCVAE):
    """β-TCVAE, whose term grows with the square of the batch and with the latents."""


class TimedLaRVAE(Timed, LaRVAE):
    """LaRVAE, whose terms grow with the labels."""


def train(point: Point, steps: int) -> dict[str, float]:
    """Train on one batch again and again; milliseconds a step, and megabytes that this rank needed beyond imports."""
    before = peak_mb()
    shape, size = (3, point.pixels, point.pixels), point.batch // point.ranks
    model: TimedTCVAE | TimedLaRVAE
    if point.labels:
        model = TimedLaRVAE(shape, label_dim=point.labels, network=BurgessNetwork())
    else:
        model = TimedTCVAE(shape, point.latents, dataset_size=10_000, network=BurgessNetwork())
    batch = Batch(torch.rand(size, *shape), torch.rand(size, point.labels), torch.arange(size) >= size // 2)
    batch.y[~batch.labelled] = torch.nan
    Trainer(
        max_steps=WARM + steps,
        accelerator="cpu",
        devices=point.ranks,
        strategy="ddp" if point.ranks > 1 else "auto",  # gloo
        use_distributed_sampler=False,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    ).fit(model, DataLoader([batch] * (WARM + steps), batch_size=None))  # type: ignore[arg-type]  # a list is enough
    ms = 1e3 * statistics.median(b - a for a, b in pairwise(model.ends[WARM - 1 :]))
    return {"ms": ms, "MB": peak_mb() - before}


def points(axes: Mapping[str, tuple[int, ...]]) -> list[Point]:
    """Every point once, however many axes it lies on."""
    return list(dict.fromkeys(Point()._replace(**{axis: n}) for axis, sizes in axes.items() for n in sizes))


def rows_of(axes: Mapping[str, tuple[int, ...]], ms: Found, mb: Found) -> list[dict[str, object]]:
    """One row a point of each axis, beside the axis' first."""
    rows: list[dict[str, object]] = []
    for axis, sizes in axes.items():
        at = {str(n): Point()._replace(**{axis: n}) for n in sizes}
        times = compared(str(sizes[0]), {name: ms[point] for name, point in at.items()})
        memory = compared(str(sizes[0]), {name: mb[point] for name, point in at.items()})
        for name, took in times.items():
            rows.append(
                {
                    "axis": axis,
                    "size": int(name),
                    "ms a step": round(took.best, 1),
                    "of the first": round(took.ratio, 2),
                    "median": round(took.median, 2),
                    "spread": f"{took.least:.2f}–{took.most:.2f}",
                    "MB a rank": round(memory[name].best),
                    "MB of the first": round(memory[name].ratio, 2),
                }
            )
    return rows


def plot(rows: list[dict[str, Any]], file: Path) -> None:
    """Draw one panel an axis: time and memory beside the first point's."""
    axes = list(dict.fromkeys(row["axis"] for row in rows))
    figure, panels = plt.subplots(1, len(axes), figsize=(2.6 * len(axes), 2.6), sharey=True, layout="constrained")
    for axis, panel in zip(axes, panels, strict=True):
        along = [row for row in rows if row["axis"] == axis]
        sizes = [row["size"] for row in along]
        for label, column in {"time": "of the first", "memory": "MB of the first"}.items():
            panel.plot(sizes, [row[column] for row in along], "o-", label=label)
        panel.set(xscale="log", xlabel=axis)
        panel.set_yscale("log", base=2)
        panel.yaxis.set_major_formatter("{x:g}")
        panel.set_xticks(sizes, [str(n) for n in sizes])
        panel.minorticks_off()
    panels[0].set_ylabel("ratio to the first")
    panels[0].legend()
    figure.savefig(file, dpi=150)
    plt.close(figure)


def run(rounds: int = 5, steps: int = STEPS, axes: Mapping[str, tuple[int, ...]] = AXES) -> list[dict[str, object]]:
    """Measure by turns, draw the plot and return one row a point of each axis."""
    ms: dict[Point, list[float]] = {point: [] for point in points(axes)}
    mb: dict[Point, list[float]] = {point: [] for point in ms}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for point in ms:
                sizes = [f"--{axis}={n}" for axis, n in point._asdict().items()]
                args = [*sizes, f"--steps={steps}"]
                took = result_of(sys.executable, "tests.bench.growth", args, Path(folder))
                ms[point].append(took["ms"])
                mb[point].append(took["MB"])
    rows = rows_of(axes, ms, mb)
    plot(rows, PLOT)
    return rows


def main() -> None:
    """Measure one point; of several ranks the first one reports."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth", description=__doc__)
    for axis, size in Point()._asdict().items():
        parser.add_argument(f"--{axis}", type=int, default=size)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = vars(parser.parse_args())
    steps = options.pop("steps")
    found = train(Point(**options), steps)
    if os.environ.get("LOCAL_RANK", "0") == "0":
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
