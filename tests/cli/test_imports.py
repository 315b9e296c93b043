"""Classes that live outside the package, in every command: `--import` and VAEZOO_IMPORT."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.helpers.harness import attempt
from tests.helpers.processes import command
from vaezoo.cli.commands import OWN_COMMANDS
from vaezoo.cli.common import HELP, imported
from vaezoo.cli.main import COMMANDS, run

ROOT = Path(__file__).parent.parent.parent
OWN = """
from torch import Tensor, nn
from datamodules import BlobsDataModule
from vaezoo import VAE, KL, Regularizer
from vaezoo.nn.networks import DenseNetwork
from vaezoo.types import Batch, Forward, Term


class OwnNetwork(DenseNetwork):
    def __init__(self, width: int = 4) -> None:
        super().__init__([width], [width])


class OwnTerm(Regularizer):
    def __init__(self, weight: float = 1.0) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        value = out.posterior["z"].mean.square().sum(1).mean()
        return Term(self.weight * value, {"value": value})


class OwnVAE(VAE):
    def __init__(self, image_shape: tuple[int, int, int], strength: float = 0.5, network: OwnNetwork | None = None,
                 regularizers: dict[str, Regularizer] | None = None) -> None:
        super().__init__(image_shape, network=network or OwnNetwork(),
                         regularizers={"kl": KL(), "own": OwnTerm(strength), **(regularizers or {})})


class OwnDataModule(BlobsDataModule):
    def __init__(self, blobs: int = 1, batch_size: int = 4) -> None:
        super().__init__(samples=blobs, batch_size=batch_size, val_size=40, test_size=40)
"""
CONFIG = {
    "model": {
        "class_path": "own_zoo.OwnVAE",
        "init_args": {
            "strength": 0.25,
            "network": {"class_path": "own_zoo.OwnNetwork", "init_args": {"width": 5}},
            "regularizers": {"more": {"class_path": "own_zoo.OwnTerm", "init_args": {"weight": 0.1}}},
        },
    },
    "data": {"class_path": "own_zoo.OwnDataModule"},
    "trainer": {"accelerator": "cpu", "max_steps": 2, "limit_val_batches": 1, "enable_progress_bar": False},
}
CHILD = """
import contextlib, io, json, sys
from vaezoo.cli.commands import OWN_COMMANDS
from vaezoo.cli.main import run
results = []
for command in json.loads(sys.argv[1]):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        results.append((run(command), said.getvalue()))
print(json.dumps(results))
"""
STUDY = {
    "configs": {"own": "own.yaml"},
    "seeds": [0],
    "evaluate": {"metrics": ["mig_20"], "images": 40, "resamples": 0},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("VAEZOO_RUN", "VAEZOO_LAST", "VAEZOO_DEBUG", "VAEZOO_IMPORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    Path("own_zoo.py").write_text(OWN)
    Path("own.yaml").write_text(yaml.safe_dump(CONFIG))
    Path("study.yaml").write_text(yaml.safe_dump(STUDY))
    return tmp_path


def in_one_process(*commands: list[str]) -> list[tuple[int, str]]:
    """Exit codes and outputs of commands, in a process that starts as the installed command does: only `--import` can
    find what lies in the current folder, and only what it has imported is known to later commands."""
    args = [sys.executable, *(["-P"] if sys.version_info >= (3, 11) else []), "-c", CHILD, json.dumps(commands)]
    done = subprocess.run(
        args, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [(code, said) for code, said in json.loads(done.stdout.splitlines()[-1])]


def test_own_classes_work_in_every_command(folder: Path) -> None:
    fit = ["fit", "--config=own.yaml", "--ckpt_path=last", "--import", "own_zoo"]
    first, said = command(fit, folder)
    assert first == 0, said
    second, said = command([*fit, "--trainer.max_steps=4"], folder)
    assert second == 0, said
    assert "last.ckpt, step 2" in said
    checkpoint = str(max(Path("runs/own").glob("*/checkpoints/last.ckpt")))
    commands = [
        ["evaluate", f"--ckpt_path={checkpoint}", "--metrics=mig_20", "--images=40", "--resamples=0"],
        ["traverse", f"--ckpt_path={checkpoint}", "--steps=2"],
        ["report", "runs/own"],
    ]
    before = [command(args, folder) for args in commands]
    evaluated, traversed, reported = (command([*args, "--import=own_zoo"], folder) for args in commands)
    assert [code for code, _ in before] == [1, 1, 0]  # a report goes on, and notes what it could not draw
    for (_, said), name in zip(before, ("OwnDataModule' is", "OwnVAE' is", "OwnVAE' is"), strict=True):
        assert f"'own_zoo.{name} not an imported" in said
        assert "--import MODULE" in said
    assert evaluated[0] == 0
    assert "40 test images of OwnDataModule" in evaluated[1]
    assert traversed[0] == 0
    assert list(Path(checkpoint).parent.parent.glob("traversals/*.png"))
    assert reported[0] == 0
    assert "could not be loaded" not in reported[1]
    assert "no images of the data" not in reported[1]


@pytest.mark.slow  # Ray, and two processes of a run
def test_a_study_hands_own_modules_on_to_its_workers() -> None:
    ((code, said),) = in_one_process(["study", "study.yaml", "--output=out", "--import", "own_zoo", "--retries=0"])
    assert code == 0, said
    (log,) = Path("out/runs").glob("*/log.txt")
    assert [line.split()[2:4] for line in log.read_text().splitlines() if line.startswith("$ vaezoo")] == [
        ["fit", "--import=own_zoo"],
        ["evaluate", "--import=own_zoo"],
    ]
    assert "mig_20" in Path("out/summary.md").read_text()


@pytest.mark.parametrize("name", [*COMMANDS, *OWN_COMMANDS])
def test_every_command_imports_and_says_so(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / f"own_{name}.py").write_text("")
    with pytest.raises(SystemExit, match="0"):
        run([name, "--import", f"own_{name}", "--help"])
    assert f"own_{name}" in sys.modules
    assert HELP in capsys.readouterr().out  # examples follow


def test_the_environment_names_modules_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "own_environment.py").write_text("")
    monkeypatch.setenv("VAEZOO_IMPORT", "own_environment")
    assert run(["study", "study.yaml", "--dry_run"]) == 0
    assert "own_environment" in sys.modules
    assert os.environ["VAEZOO_IMPORT"] == "own_environment"


def test_several_modules_by_commas_and_by_repeating(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("first", "second", "third"):
        (folder / f"own_{name}.py").write_text("")
    before, path = dict(os.environ), list(sys.path)
    args = ["study", "study.yaml", "--dry_run", "--import", "own_first, own_second", "--import=own_third"]
    assert run(args) == 0
    assert "--import=own_first,own_second,own_third" in capsys.readouterr().out
    assert {"own_first", "own_second", "own_third"} <= sys.modules.keys()
    assert (dict(os.environ), sys.path) == (before, path)


def test_the_current_folder_hides_nothing_that_is_installed(folder: Path) -> None:
    before = list(sys.path)
    (folder / "own_last.py").write_text("")
    with imported(["own_last"]):
        assert sys.path == [*before, str(folder)]
    assert sys.path == before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--import", "no_such_zoo"], "--import no_such_zoo: there is no module 'no_such_zoo', neither installed nor"),
        (["--import", "vaezoo.no_such"], "--import vaezoo.no_such: there is no module 'vaezoo.no_such'"),
        (["--import", "own_needy"], "--import own_needy: it needs the module 'no_such_zoo', which is missing"),
        (["--import", "own_broken"], "--import own_broken: it failed, --debug shows where (NameError: name 'oops'"),
        (["--import", "--debug"], "--import needs the name of a module"),
        (["--import"], "--import needs the name of a module"),
        (["--import="], "--import needs the name of a module"),
    ],
)
def test_what_cannot_be_imported_is_one_line(args: list[str], message: str, folder: Path) -> None:
    (folder / "own_needy.py").write_text("import no_such_zoo")
    (folder / "own_broken.py").write_text("oops")
    code, line = attempt(["report", "runs", *args])
    assert code == 2
    assert message in line
