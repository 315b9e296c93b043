import os

import pytest

# Some virtual machines advertise AMX and trap on it; bfloat16 kernels up to AVX-512 run everywhere.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
os.environ.setdefault("WANDB_MODE", "offline")
# Two test workers on two cores: more threads would fight each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def _no_seed_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line leaves its seed in the environment, where it would decide the noise of later trainings."""
    monkeypatch.setenv("PL_GLOBAL_SEED", "")  # so that whatever a test sets is taken away again
    monkeypatch.delenv("PL_GLOBAL_SEED")
