"""What a process holds while it trains, and whether that grows."""

import json
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
from lightning.pytorch import Callback, LightningModule, Trainer

MEGABYTE = 1 << 20
MEMORY_BOUND = 16 * MEGABYTE  # what the line through the resident memory may rise by after the warm-up
DISK_BOUND = 1.25  # checkpoints and pictures may grow by a quarter: a better picture compresses less
LOGS = ("metrics.csv", "wandb")  # what grows with the steps by design


class Sample(NamedTuple):
    """What the process holds at a step."""

    step: int
    seconds: float
    memory: int
    files: int
    threads: int
    children: int
    figures: int
    kept: int
    kept_files: int
    logs: int


class Watch(Callback):
    """Takes a sample after each validation, with pictures drawn and scores computed, into a file of JSON lines.

    Args:
        path: The file.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take a sample; the first validation is Lightning's check before training."""
        if not trainer.sanity_checking and trainer.log_dir is not None:
            with self.path.open("a") as lines:
                lines.write(json.dumps(sample(trainer.global_step, Path(trainer.log_dir))) + "\n")


def sample(step: int, folder: Path) -> Sample:
    """What this process holds now, and what is in the run's folder; from /proc, so on Linux alone."""
    own = Path("/proc/self")
    children = sum(len((task / "children").read_text().split()) for task in (own / "task").iterdir())
    files = [path for path in folder.rglob("*") if path.is_file()]
    logs = [path for path in files if path.relative_to(folder).parts[0] in LOGS]
    kept = [path for path in files if path not in set(logs)]
    return Sample(
        step,
        time.time(),
        int((own / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
        len(list((own / "fd").iterdir())),
        len(list((own / "task").iterdir())),
        children,
        len(plt.get_fignums()),
        sum(path.stat().st_size for path in kept),
        len(kept),
        sum(path.stat().st_size for path in logs),
    )


def read(path: Path) -> list[Sample]:
    """Samples from a file."""
    return [Sample(*json.loads(line)) for line in path.read_text().splitlines()]


def violations(samples: Sequence[Sample]) -> list[str]:
    """What grows after the warm-up, the first third of the samples, one line each."""
    if len(samples) < 9:
        return [f"{len(samples)} samples are too few to judge by: let it run for longer"]
    third = len(samples) // 3
    middle, last = samples[third : 2 * third], samples[2 * third :]
    found = []
    for name in ("files", "threads", "children", "figures", "kept_files"):
        before, after = (statistics.median(getattr(s, name) for s in part) for part in (middle, last))
        if after > before:
            found.append(f"{name} grow from {before:g} to {after:g}")
    if (rise := memory_rise(samples)) > MEMORY_BOUND:
        found.append(f"memory rises by {rise / MEGABYTE:.1f} MB, more than {MEMORY_BOUND / MEGABYTE:g}")
    if max(s.kept for s in last) > DISK_BOUND * max(s.kept for s in middle):
        found.append(f"checkpoints and pictures grow from {middle[0].kept} to {last[-1].kept} bytes")
    return found


def memory_rise(samples: Sequence[Sample]) -> float:
    """Rise of the line through the resident memory, in bytes, from the end of the warm-up to the end."""
    rest = samples[len(samples) // 3 :]
    slope = statistics.linear_regression([s.step for s in rest], [s.memory for s in rest]).slope
    return slope * (rest[-1].step - rest[0].step)


def row(name: str, samples: Sequence[Sample]) -> dict[str, object]:
    """A line of the table."""
    first, last = samples[len(samples) // 3], samples[-1]
    steps = max(last.step - first.step, 1)
    return {
        "model": name,
        "steps": last.step,
        "validations": len(samples),
        "minutes": round((last.seconds - samples[0].seconds) / 60, 1),
        "memory MB": f"{first.memory / MEGABYTE:.0f} → {last.memory / MEGABYTE:.0f}",
        "line MB": f"{memory_rise(samples) / MEGABYTE:+.1f}",
        "files": f"{first.files} → {last.files}",
        "threads": f"{first.threads} → {last.threads}",
        "children": f"{first.children} → {last.children}",
        "figures": last.figures,
        "kept MB": f"{first.kept / MEGABYTE:.1f} → {last.kept / MEGABYTE:.1f}",
        "logs bytes/step": round((last.logs - first.logs) / steps),
    }
