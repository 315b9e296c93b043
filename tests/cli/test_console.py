"""What a command says, and what it keeps to itself."""

import logging
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.commands import MODELS, NETWORK, SMALL
from vaezoo.callbacks import ProgressLines, ThroughputBar
from vaezoo.cli.common import DEBUG
from vaezoo.cli.console import NOISE, console
from vaezoo.cli.main import run
from vaezoo.cli.opening import describe_precision

GIVEN = [*MODELS["beta"], SMALL, NETWORK, "--trainer.accelerator=cpu"]
FIT = ["fit", *GIVEN, "--trainer.max_steps=2", "--trainer.limit_val_batches=1"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """What Lightning logs, wherever it goes."""
    messages: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    handler, loggers = Keep(), [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    for logger in loggers:
        logger.addHandler(handler)
    yield messages
    for logger in loggers:
        logger.removeHandler(handler)


def test_fit_begins_with_what_runs(capsys: pytest.CaptureFixture[str]) -> None:
    compiled = ["--trainer.callbacks+=Compile", "--trainer.precision=bf16-mixed", "--seed_everything=3"]
    assert run([*FIT, "--trainer.limit_train_batches=0"]) == 0
    (folder,) = Path("runs/betavae").iterdir()
    assert capsys.readouterr().out.splitlines()[:6] == [
        "model:   BetaVAE (Higgins et al., 2017), 128 parameters",
        "network: DenseNetwork for 1×2 images of 1 channel: dense 8 down, 8 up",
        "data:    Small (drawn here), 96 training, 14 validation, 10 test images",
        "labels:  none",
        "device:  cpu, 32-true, not compiled, seed 0",
        f"run:     {folder}",
    ]
    labels = ["--data=BlobsDataModule", "--data.labels=20", "--data.batch_size=4", "--trainer.limit_train_batches=0"]
    assert run(["fit", *(arg for arg in GIVEN if arg != SMALL), *labels, *compiled, "--trainer.max_steps=1"]) == 0
    said = capsys.readouterr().out
    assert "labels:  20 of 82,400 training images (onehot of row, column, radius)\n" in said
    assert re.search(r"device:  cpu, bf16-mixed( \(.*\))?, compiled, seed 3\n", said)


def test_bfloat16_is_named_slow_where_the_processor_has_no_instructions_for_it() -> None:
    older, newer = {"avx2": True, "amx_bf16": False, "avx512_bf16": False}, {"amx_bf16": False, "avx512_bf16": True}
    assert describe_precision("bf16-mixed", older) == "bf16-mixed (32-true is faster on this processor)"
    assert describe_precision("bf16-mixed", newer) == "bf16-mixed"
    assert describe_precision("bf16-mixed", None) == "bf16-mixed"
    assert describe_precision("32-true", older) == "32-true"


def test_what_nobody_can_act_on_is_shown_by_debug_alone(
    capsys: pytest.CaptureFixture[str], logged: list[str], recwarn: pytest.WarningsRecorder
) -> None:
    quick = [*FIT, "--data.test_size=0", "--trainer.num_sanity_val_steps=0"]
    assert run(quick) == 0
    said = capsys.readouterr()
    shown = [*logged, *(str(warning.message) for warning in recwarn), *said.out.splitlines(), *said.err.splitlines()]
    assert not [line for line in shown if NOISE.search(line) or "FLOPs" in line]
    assert any("max_steps=2` reached" in line for line in logged)  # news are not lost
    logged.clear()
    assert run([*quick, "--debug"]) == 0
    assert {"Seed set to 0"} <= set(logged)
    assert any(line.startswith("GPU available") for line in logged)
    assert "Params" in capsys.readouterr().out
    assert DEBUG not in os.environ


def test_warnings_are_one_line_without_a_path() -> None:
    before = warnings.formatwarning
    with console(debug=False):
        assert warnings.formatwarning("few\nimages", UserWarning, "a.py", 3) == "warning: few images\n"
        with warnings.catch_warnings(record=True) as found:
            warnings.warn("Total length of `list` across ranks is zero. Is it?", stacklevel=1)
            warnings.warn("something else", stacklevel=1)
        assert [str(warning.message) for warning in found] == ["something else"]
    assert warnings.formatwarning is before
    with console(debug=True):
        assert os.environ[DEBUG] == "1"
        assert warnings.formatwarning is before


def test_output_that_is_no_terminal_gets_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProgressLines.__init__, "__defaults__", (0.0,))
    assert run(["fit", *GIVEN, "--trainer.max_steps=4", "--trainer.val_check_interval=2"]) == 0
    said = capsys.readouterr()
    assert "\r" not in said.out + said.err
    assert "it/s" not in said.out + said.err
    lines = [line for line in said.out.splitlines() if line.startswith("epoch 0, step ")]
    assert [line.split(":")[0] for line in lines] == [f"epoch 0, step {n} of 4" for n in (1, 2, 2, 3, 4, 4)]
    assert "train/loss " in lines[0]
    assert lines[0].endswith(" img/s")
    assert ": val/loss " in lines[2]


def test_a_line_a_minute_and_a_bar_for_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(FIT) == 0
    assert "img/s" not in capsys.readouterr().out  # it took less than a minute
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    shown: list[object] = []
    start = ThroughputBar.on_train_start
    monkeypatch.setattr(ThroughputBar, "on_train_start", lambda bar, *args: (shown.append(bar), start(bar, *args)))
    assert run(FIT) == 0
    assert len(shown) == 1
