"""What a command sets before its first step: kept memory, and no search for GPUs that are not there."""

import platform
import subprocess
import sys

import torch

FAULTS = """
import os
import resource
from vaezoo.__main__ import main
{first}
import torch

def step():
    kept = [torch.ones(1 << 22) for _ in range(12)]  # 16 MB each, as large activations are

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

step()
step()
before = faults()
for _ in range(5):
    step()
import lightning.pytorch
print(faults() - before, os.environ.get("PYTORCH_NVML_BASED_CUDA_CHECK"))
"""


def after(first: str) -> tuple[int, str]:
    """Pages that five steps ask the system for, and how PyTorch looks for GPUs."""
    code = FAULTS.format(first=first)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    faults, search = done.stdout.split()[-2:]
    return int(faults), search


def test_a_command_keeps_what_its_steps_free_and_does_not_look_for_gpus_in_each() -> None:
    (kept, search), (lost, search_of_lightning) = after("main(['experiments'])"), after("")
    if platform.libc_ver()[0] == "glibc":  # no other malloc is told to keep memory
        assert kept < 100 < 1000 < lost
    assert search_of_lightning == "1"
    assert search == ("1" if torch.cuda.is_available() else "None")
