"""What every test starts from."""

import os
import random
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

# Some virtual machines advertise AMX and trap on it; bfloat16 kernels up to AVX-512 run everywhere.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
os.environ.setdefault("WANDB_MODE", "offline")
# Several test workers: more threads would fight each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


# What commands, trainers and W&B leave in the environment, where it would decide what later ones do.
LEFT_BEHIND = ("PL_", "VAEZOO_", "WANDB_", "LOCAL_RANK", "NODE_RANK", "MASTER_")
GIVEN = {key: value for key, value in os.environ.items() if key == "VAEZOO_FUZZ" or key.startswith("WANDB_")}
FOLDER = Path.cwd()
HANDLERS = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}


def start_afresh() -> None:
    """The environment, folder, signal handlers and random numbers with which every test starts."""
    import numpy as np
    import torch  # reads the variables above as it is imported

    for key in [key for key in os.environ if key.startswith(LEFT_BEHIND)]:
        del os.environ[key]
    os.environ |= GIVEN
    os.chdir(FOLDER)
    for number, handler in HANDLERS.items():
        signal.signal(number, handler)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Iterator[object]:
    """Fixtures that several tests share know nothing of what ran before them either."""
    if fixturedef.scope != "function":
        start_afresh()
    return (yield)


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    start_afresh()
    yield
    start_afresh()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)
