"""Pictures a second into the cache of a folder, on all cores beside one."""

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from datamodules import ImageFolderDataModule, pictures

FILES, SIDE = 400, 512


def write(folder: Path) -> None:
    """Smooth pictures of noise, as large as photographs on the web."""
    noise = np.random.default_rng(0)
    folder.mkdir()
    for i in range(FILES):
        coarse = Image.fromarray(noise.integers(0, 256, (32, 32, 3), dtype=np.uint8))
        coarse.resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(folder / f"{i:04d}.jpg", quality=90)


def build(folder: Path, workers: int | None) -> float:
    """Seconds to build the cache; as many threads as there are cores, or the given number."""
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    before, pictures.WORKERS = pictures.WORKERS, workers
    try:
        start = time.perf_counter()
        ImageFolderDataModule(folder).prepare_data()
        return time.perf_counter() - start
    finally:
        pictures.WORKERS = before


def run(rounds: int = 3) -> list[dict[str, object]]:
    """Measure in turns, and return the best of either."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "photos")
        seconds: dict[str, list[float]] = {"one core": [], "all cores": []}
        for _ in range(rounds):
            seconds["one core"].append(build(Path(folder) / "photos", 1))
            seconds["all cores"].append(build(Path(folder) / "photos", None))
    best = {name: min(times) for name, times in seconds.items()}
    rates: dict[str, object] = {f"{name}, pictures/s": round(FILES / time) for name, time in best.items()}
    return [
        {
            "cache": f"{FILES} JPEG files of {SIDE}×{SIDE}",
            **rates,
            "speedup": round(best["one core"] / best["all cores"], 2),
        }
    ]
