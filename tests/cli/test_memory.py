"""Memory that a step frees is kept for the next one."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
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
print(faults() - before)
"""


def faults(first: str) -> int:
    """Pages that five steps ask the system for."""
    code = FAULTS.format(first=first)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc is told to keep memory")
def test_a_command_keeps_what_its_steps_free() -> None:
    assert faults("main(['experiments'])") < 100 < 1000 < faults("")
