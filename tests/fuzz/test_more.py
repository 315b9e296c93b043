import os
import subprocess
import sys

import pytest

from tests.helpers.paths import ROOT


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("file", ["test_configs.py", "test_commands.py", "test_files.py"])
def test_ten_times_as_many_inputs(file: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        f"tests/fuzz/{file}",
        "-n",
        "0",
        "-k",
        "wrong or damaged or anything",
    ]
    environment = os.environ | {"VAEZOO_FUZZ": "slow"}
    done = subprocess.run(
        [*command, "-o", "timeout=3500"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
