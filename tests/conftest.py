import os

# Some virtual machines advertise AMX and trap on it; bfloat16 kernels up to AVX-512 run everywhere.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
os.environ.setdefault("WANDB_MODE", "offline")
# Two test workers on two cores: more threads would fight each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
