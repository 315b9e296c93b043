"""What logging to Weights & Biases, offline, costs a run of `make demo`."""

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from tests.bench.overhead import Timed, starts
from tests.bench.timing import beside
from tests.helpers.paths import ROOT
from vaezoo.cli.main import run as command
from vaezoo.models import LaRVAE

STEPS, DEMO_STEPS = 100, 5000
DEMO = [
    *(f"--config={ROOT}/experiments/larvae_3dshapes.yaml", "--model=tests.bench.tracking.TimedLaRVAE"),
    *("--model.nuisance_dim=0", "--model.lr=1e-3", "--data.batch_size=16", "--data.source=render"),
    *("--data.val_size=2000", f"--trainer.max_steps={STEPS}", f"--trainer.val_check_interval={STEPS // 2}"),
    "--trainer.accelerator=cpu",
]


class TimedLaRVAE(Timed, LaRVAE):
    """LaRVAE with a clock."""


def fit(*options: str) -> None:
    """The demo's run with its two validations, and fewer steps."""
    if code := command(["fit", *DEMO, *options]):
        raise RuntimeError(f"vaezoo fit ended with {code}")


def seconds(candidate: Callable[[], None]) -> float:
    """What the demo would take: start, validations, pictures and end as measured, and the median step 5,000 times."""
    starts.clear()
    began = time.perf_counter()
    candidate()
    took = time.perf_counter() - began
    step = statistics.median(b - a for a, b in pairwise(starts))
    return took + (DEMO_STEPS - STEPS) * step


def run(rounds: int = 5) -> list[dict[str, object]]:
    """Measure in turns, and return one row a candidate: best and median of the rounds."""
    os.environ["WANDB_MODE"] = "offline"
    candidates = {"no tracker": fit, "W&B, offline": partial(fit, "--trainer.logger=WandbLogger")}
    found = beside("no tracker", candidates, seconds, rounds)
    return [
        {
            "what": name,
            "s": round(best, 1),
            "of no tracker (≤ 1.03)": round(ratio, 3),
            "median": round(median, 3),
        }
        for name, (best, ratio, median) in found.items()
    ]
