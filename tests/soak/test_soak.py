"""The fast form of `make soak`, and what it would find."""

from pathlib import Path

import pytest

from tests.soak.__main__ import MODELS, soak
from tests.soak.watch import MEMORY_BOUND, Sample, violations

FLAT = [Sample(10 * i, i, 500 << 20, 30, 8, 1, 0, 10_000, 12, 100 * i) for i in range(30)]


def grow(**each: int) -> list[Sample]:
    return [s._replace(**{name: getattr(s, name) + by * i for name, by in each.items()}) for i, s in enumerate(FLAT)]


@pytest.mark.parametrize(
    ("name", "by"), [("memory", MEMORY_BOUND // 15), ("files", 1), ("threads", 1), ("children", 1), ("kept", 500)]
)
def test_growth_is_found(name: str, by: int) -> None:
    assert violations(FLAT) == []
    (line,) = violations(grow(**{name: by}))
    assert name.replace("kept", "checkpoints") in line
    assert violations(grow(memory=MEMORY_BOUND // 60, logs=10**6)) == []
    assert "too few" in violations(FLAT[:8])[0]


def test_a_short_run_leaves_no_files_threads_or_figures_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, data, _ = MODELS["PartedVAE"]
    monkeypatch.setitem(MODELS, "PartedVAE", (arguments, data, ["SavePictures", "SavePriors"]))  # one of each kind
    samples = soak("PartedVAE", tmp_path, steps=18, minutes=5, every=2)
    assert len(samples) == 9
    assert [line for line in violations(samples) if not line.startswith("memory")] == []  # too short to judge that by
    assert samples[-1].figures == 0
    assert samples[-1].logs > samples[0].logs > 0
