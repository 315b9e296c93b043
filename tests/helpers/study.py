"""Studies of tiny runs, started as users start them, and processes to kill."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.helpers.processes import command

TINY = {
    "model": {
        "class_path": "BetaVAE",
        "init_args": {
            "latent_dim": 2,
            "network": {"class_path": "DenseNetwork", "init_args": {"encoder_widths": [4], "decoder_widths": [4]}},
        },
    },
    "data": {"class_path": "BlobsDataModule", "init_args": {"batch_size": 4, "val_size": 0, "test_size": 0}},
    "trainer": {
        "accelerator": "cpu",
        "max_steps": 5,
        "log_every_n_steps": 5,
        "callbacks": [{"class_path": "LastCheckpoint", "init_args": {"every_n_train_steps": 50}}],
    },
}


EVALUATE = {"metrics": ["polar_error"], "images": 100, "resamples": 0}


class Tiny:
    """A folder with a study of tiny runs.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.started = path, list[subprocess.Popen[str]]()
        (path / "tiny.yaml").write_text(yaml.safe_dump(TINY))

    def write(self, **content: Any) -> None:
        study = {"configs": {"vae": "tiny.yaml"}, "seeds": [0], "evaluate": EVALUATE, **content}
        (self.path / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))

    def start(self, *options: str) -> "subprocess.Popen[str]":
        args = [sys.executable, "-m", "vaezoo", "study", "study.yaml", "--output=out", *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(  # type: ignore[call-overload]
            args, cwd=self.path, text=True, preexec_fn=_hears_interrupts, **pipes
        )
        self.started.append(process)
        return self.started[-1]

    def run(self, *options: str) -> tuple[int, str]:
        return command(["study", "study.yaml", "--output=out", *options], self.path)

    def folder(self, name: str) -> Path:
        (found,) = (self.path / "out" / "runs").glob(f"{name}-????????")
        return found

    def commands(self, name: str) -> list[str]:
        return [
            line for line in (self.folder(name) / "log.txt").read_text().splitlines() if line.startswith("$ vaezoo")
        ]

    def checkpoints(self, name: str) -> list[Path]:
        return sorted((self.path / "out" / "runs").glob(f"{name}-????????/*/checkpoints/last.ckpt"))


def training(run: Path) -> list[int]:
    """Processes that train a run, by what /proc says of them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
        except OSError:  # it has just ended
            continue
        if {"fit", f"--experiment={run.name}", f"--runs_dir={run.parent}"} <= set(words):
            found.append(int(folder.name))
    return found


def listening(process: int) -> set[str]:
    """Addresses that a process and its descendants listen to, in hexadecimal as /proc has them."""
    sockets = {}
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            if state == "0A":
                sockets[f"socket:[{line.split()[9]}]"] = local.partition(":")[0]
    found, family = set(), {process}
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda folder: int(folder.name)):
        try:
            if parent(int(folder.name)) in family or int(folder.name) in family:
                family.add(int(folder.name))
                found |= {sockets.get(os.readlink(file), "") for file in (folder / "fd").iterdir()}  # noqa: PTH115
        except OSError:  # it has just ended
            continue
    return found - {""}


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def wait_for(what: Callable[[], object], seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.1)


def alive(process: int) -> bool:
    return os.path.exists(f"/proc/{process}")  # noqa: PTH110


def _hears_interrupts() -> None:
    """What runs in the background of a shell ignores Ctrl-C, and its children with it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
