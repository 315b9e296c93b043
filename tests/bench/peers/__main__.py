"""`make bench-peers`: vaezoo beside pythae, disent and a bare loop, by turns; writes benchmarks-peers.json."""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from tests.bench.__main__ import table
from tests.bench.children import ChildError, result_of
from tests.bench.peers.workload import CONV, METHODS, TINY, WORK, Size
from tests.bench.timing import compared

OURS = "vaezoo fit"
Values = dict[str, list[float]]


class Candidate(NamedTuple):
    """A script, the methods that its library has, and whether the library is in the peers' environment."""

    script: str
    methods: tuple[str, ...] = METHODS
    peer: bool = False
    options: tuple[str, ...] = ()
    loads: bool = True


CANDIDATES = {
    OURS: Candidate("with_vaezoo"),
    f"{OURS} --compile true": Candidate("with_vaezoo", options=("--compiled",), loads=False),
    "pythae": Candidate("with_pythae", ("BetaVAE", "TCVAE", "FactorVAE"), peer=True),
    "disent": Candidate("with_disent", ("BetaVAE", "TCVAE", "DIPVAE"), peer=True),
    "bare loop": Candidate("bare", ("BetaVAE", "TCVAE", "DIPVAE")),
}
MEASURES = {"train": ("ms", "peak MB", "first step s"), "overhead": ("median ms",), "loader": ("ms",)}
"""What is read from each kind of work."""


def turns() -> Iterator[tuple[str, str, str]]:
    """Work, method and candidate of every child in a round; a loader does not know the method."""
    for work in WORK:
        for method in METHODS if work != "loader" else METHODS[:1]:
            for name, candidate in CANDIDATES.items():
                if method in candidate.methods and (candidate.loads or work != "loader"):
                    yield work, method, name


def write_images(folder: Path, size: Size, count: int) -> Path:
    """Noise, as many batches as there are steps."""
    file = folder / f"images{size.shape[-1]}.npy"
    noise = np.random.default_rng(0).integers(0, 256, (count * size.batch, *size.shape[1:]), dtype=np.uint8)
    np.save(file, noise)
    return file


def measure(options: argparse.Namespace) -> tuple[dict[tuple[str, str, str], Values], dict[tuple[str, str], str]]:
    """All candidates by turns, several times; what each took by measure and method, and why others did not run."""
    found: dict[tuple[str, str, str], Values] = defaultdict(lambda: defaultdict(list))
    missing: dict[tuple[str, str], str] = {}
    with tempfile.TemporaryDirectory() as folder:
        count = options.warm + options.steps
        tiny, conv = (write_images(Path(folder), size, count) for size in (TINY, CONV))
        for number in range(options.rounds):
            for work, method, name in turns():
                script, _, peer, more, _ = CANDIDATES[name]
                images = tiny if work == "overhead" else conv
                limits = [f"--warm={options.warm}", f"--steps={options.steps}", f"--started={time.time()}"]
                args = [method, work, str(images), *limits, *more]
                try:
                    if (name, method) in missing:
                        continue
                    python = options.peers.absolute() if peer else Path(sys.executable)
                    took = result_of(python, f"tests.bench.peers.{script}", args, Path(folder))
                except ChildError as error:
                    missing[name, method] = str(error)
                    print(f"{work} {method}, {name}, is left out: {error}", file=sys.stderr, flush=True)
                    continue
                print(f"round {number + 1}/{options.rounds}: {work} {method}, {name}", file=sys.stderr, flush=True)
                for what in MEASURES[work]:
                    found[work, what, method][name].append(took[what])
    return found, missing


def rows_of(work: str, what: str, method: str, values: Values, rounds: int) -> list[dict[str, object]]:
    """One row a candidate: the best, and its ratio to vaezoo; a ratio above 1 takes longer, or more memory."""
    complete = {name: times for name, times in values.items() if len(times) == rounds}
    if OURS not in complete:
        return []
    rows: list[dict[str, object]] = []
    for name, took in compared(OURS, complete).items():
        row: dict[str, object] = {"method": method, "what": name, f"{work}: {what}": round(took.best, 3)}
        if work != "overhead" and what == "ms":
            row["images/s"] = round(1e3 * CONV.batch / took.best)
        row |= {f"of {OURS}": round(took.ratio, 2), "median": round(took.median, 2)}
        rows.append(row | {"spread": f"{took.least:.2f}–{took.most:.2f}"})
    return rows


def main() -> None:
    """Measure, print the tables and write them down."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    parser.add_argument("--peers", type=Path, default=Path(".venv-peers/bin/python"), help="Python that has the peers.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm", type=int, default=20, help="Steps that do not count.")
    parser.add_argument("--steps", type=int, default=100, help="Steps that do.")
    options = parser.parse_args()
    found, missing = measure(options)
    tables: dict[str, list[dict[str, object]]] = defaultdict(list)
    for (work, what, method), values in found.items():
        tables[f"{work}: {what}"] += rows_of(work, what, method, values, options.rounds)
    if missing:
        tables["left out"] = [{"method": method, "what": name, "why": why} for (name, method), why in missing.items()]
    for name, rows in tables.items():
        if rows:
            print(f"\n{name}\n{table(rows)}", flush=True)
    setting = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "cpu": torch.backends.cpu.get_cpu_capability(),
    }
    limits = {"rounds": options.rounds, "warm": options.warm, "steps": options.steps}
    Path("benchmarks-peers.json").write_text(json.dumps({**setting, **limits, **tables}, indent=2) + "\n")


if __name__ == "__main__":
    main()
