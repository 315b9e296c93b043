"""What every failure must look like, and how many inputs are tried."""

import contextlib
import io
import os
import re
import warnings
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

from vaezoo.cli.main import run

# What no user should have to read: Python's and jsonargparse's own words for types and objects.
INTERNALS = re.compile(
    r"Traceback|<class|<object|0x[0-9a-f]{6}|Namespace\(|Subtypes|Does not validate|Parser key|weights_only"
)
LONGEST = 700


def tries(examples: int) -> Callable[[Any], Any]:
    """The same inputs at every run; ten times as many with VAEZOO_FUZZ=slow."""
    return settings(
        max_examples=examples * (10 if os.environ.get("VAEZOO_FUZZ") == "slow" else 1),
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def attempt(args: list[str]) -> tuple[int, str]:
    """Exit code of a command and its error, which is one plain line; no error where it succeeds."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = run(args)
        except SystemExit as stop:  # --help and --print_config
            code = int(stop.code or 0)
    lines = [line for line in err.getvalue().splitlines() if line.startswith("vaezoo: error: ")]
    assert "Traceback" not in err.getvalue() + out.getvalue()
    if code == 0:
        assert not lines, lines
        return 0, ""
    (line,) = lines
    assert err.getvalue().rstrip("\n").endswith(line), "the error is the last thing on stderr"
    assert not INTERNALS.search(line), line
    assert len(line) <= LONGEST, line
    assert len(line.removeprefix("vaezoo: error: ")) >= 15, line
    return code, line
