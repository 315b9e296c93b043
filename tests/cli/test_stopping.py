"""Runs of the command line that are stopped, killed and continued."""

import csv
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import wandb
import yaml
from lightning.pytorch import Callback, Trainer

from tests.helpers.continuing import same_state
from tests.helpers.paths import ROOT
from tests.helpers.processes import Forked
from vaezoo.callbacks import StopOnSignal
from vaezoo.cli import trainer
from vaezoo.cli.main import run
from vaezoo.runs.checkpoint_io import read_checkpoint
from vaezoo.runs.files import DRAFT

FIT = [
    "--model=BetaVAE",
    "--model.network=DenseNetwork",
    "--model.network.encoder_widths=[32]",
    "--model.network.decoder_widths=[32]",
    "--data=BlobsDataModule",
    "--data.batch_size=8",
    "--trainer.limit_val_batches=2",
    "--trainer.val_check_interval=3",
    "--trainer.num_sanity_val_steps=0",
    "--trainer.enable_progress_bar=false",
    "--trainer.enable_model_summary=false",
    "--trainer.callbacks=LastCheckpoint",
    "--trainer.callbacks.every_n_train_steps=2",
    "--experiment=exp",
]

# Writing takes as long as a few steps, so that many a kill falls within.
LARGE = [
    *FIT,
    "--model.network.encoder_widths=[200]",
    "--model.network.decoder_widths=[200]",
    "--trainer.val_check_interval=7",
    "--trainer.log_every_n_steps=1",
]
COMMAND = [sys.executable, "-m", "vaezoo", "fit", *LARGE]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def fit(steps: int, *more: str, last: str = "last") -> int:
    return run(["fit", *FIT, f"--trainer.max_steps={steps}", f"--ckpt_path={last}", *more])


def runs() -> list[Path]:
    return sorted(Path("runs/exp").iterdir(), key=lambda run: run.stat().st_ctime)


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()  # not through a hard link
    path.write_bytes(data)


def test_last_starts_a_run_continues_it_and_knows_when_it_is_complete(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(4) == 0
    assert "no checkpoint in runs/exp to continue from" in capsys.readouterr().out
    assert fit(4) == 0
    assert "last.ckpt is complete after step 4: nothing to do" in capsys.readouterr().out
    assert len(runs()) == 1
    assert fit(6) == 0
    first, second = runs()
    last = f"{first}/checkpoints/last.ckpt"
    assert f"continuing from {last}, step 4" in capsys.readouterr().out
    assert yaml.safe_load((second / "config.yaml").read_text())["ckpt_path"] == last
    assert run(["fit", *FIT, "--trainer.max_steps=6", "--experiment=unbroken"]) == 0
    (unbroken,) = Path("runs/unbroken").iterdir()
    for name in ("last.ckpt", "best.ckpt"):
        same_state(unbroken / "checkpoints" / name, second / "checkpoints" / name)
    assert fit(6, "--seed_everything=5") == 0
    assert "no checkpoint in" in capsys.readouterr().out  # never from a run of another seed
    assert run(["test", *FIT, "--ckpt_path=last", "--trainer.limit_test_batches=1"]) == 0
    assert run(["test", *FIT, "--ckpt_path=last", "--experiment=none"]) == 1


def test_a_damaged_checkpoint_falls_back_on_the_one_before(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(4) == 0
    folder = runs()[0] / "checkpoints"
    last, previous = folder / "last.ckpt", folder / "previous.ckpt"
    assert [read_checkpoint(path)["global_step"] for path in (last, previous)] == [4, 2]
    damage(last)
    assert fit(6, last=str(last)) == 1
    assert f"{last} is damaged" in (said := capsys.readouterr().err)
    assert f"the one before it is {previous}" in said
    with pytest.warns(UserWarning, match=r"last.ckpt is damaged .*previous.ckpt: continuing from .*best.ckpt"):
        assert fit(6) == 0
    assert f"continuing from {folder / 'best.ckpt'}, step 3" in capsys.readouterr().out  # further than the one before
    damage(folder / "best.ckpt")
    for path in (runs()[1] / "checkpoints").glob("*.ckpt"):
        path.unlink()
    with pytest.warns(UserWarning, match=r"best.ckpt is damaged .*: continuing from .*previous.ckpt"):
        assert fit(6) == 0
    assert read_checkpoint(runs()[2] / "checkpoints" / "last.ckpt")["global_step"] == 6


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--model=FactorVAE", "the checkpoint holds a BetaVAE, the configuration names a FactorVAE"),
        ("--model.latent_dim=3", "the checkpoint was written with model.latent_dim=10, the configuration says 3"),
        ("--model.beta=7", "the checkpoint was written with model.beta=4.0, the configuration says 7.0"),
    ],
)
def test_another_model_does_not_continue_a_run(option: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(2) == 0
    assert fit(4, option) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("vaezoo: error:")]
    assert message in line


def test_a_tracked_run_is_found_by_its_last_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    monkeypatch.setattr(trainer, "fill_in_logger", lambda *args: found.append(args[-1]))
    assert fit(2) == 0
    fit(4, "--trainer.logger=WandbLogger", "--trainer.logger.init_args.mode=disabled")
    wandb.finish()
    assert found == [f"{runs()[0]}/checkpoints/last.ckpt"]


class Victim:
    """`vaezoo fit` in a process of its own."""

    def __init__(self, steps: int, *more: str, start_new_session: bool = False) -> None:
        before = set(Path("runs/exp").glob("*"))
        command = [*COMMAND, f"--trainer.max_steps={steps}", "--ckpt_path=last", *more]
        self.process: Forked | subprocess.Popen[bytes]
        if not start_new_session:
            self.process = Forked(command[3:], Path("said.txt"))
        else:
            with Path("said.txt").open("a") as said:
                env = os.environ | {"PYTHONPATH": str(ROOT)}
                self.process = subprocess.Popen(
                    command, stdout=said, stderr=subprocess.STDOUT, env=env, start_new_session=True
                )
        while not (new := set(Path("runs/exp").glob("*/checkpoints")) - {run / "checkpoints" for run in before}):
            self.wait_a_little()
        (self.folder,) = new

    def wait_a_little(self) -> None:
        assert self.process.poll() is None, Path("said.txt").read_text()[-3000:]
        time.sleep(0.001)

    def writes(self) -> Iterator[None]:
        """One item at the beginning of each write of a checkpoint."""
        under_way = False
        while True:
            now = any(self.folder.glob(f"*last.ckpt*{DRAFT}"))
            if now and not under_way:
                yield
            under_way = now
            self.wait_a_little()

    def end(self, number: int, group: bool = False) -> None:
        (os.killpg if group else os.kill)(self.process.pid, number)
        code = self.process.wait(120)
        assert code == {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}[number], said()
        if number != signal.SIGKILL:
            assert f"stopped by {signal.Signals(number).name} after step" in said()
            assert f"--ckpt_path {self.folder}/last.ckpt" in said().splitlines()[-1]


def said() -> str:
    return Path("said.txt").read_text()


def kill_and_continue(steps: int, numbers: list[int], seed: int) -> None:
    """Kill a run at random points, continue it each time, and compare its end with that of an undisturbed one."""
    chance = random.Random(seed)
    assert run(["fit", *LARGE, f"--trainer.max_steps={steps}", "--experiment=unbroken"]) == 0
    for number in numbers:
        victim = Victim(steps)
        for _ in zip(victim.writes(), range(chance.randint(1, 3)), strict=False):
            pass
        time.sleep(chance.choice((0, 0, chance.uniform(0, 0.3))))  # in the write, or at any time after it
        victim.end(number)
    assert run(["fit", *LARGE, f"--trainer.max_steps={steps}", "--ckpt_path=last"]) == 0
    (unbroken,) = Path("runs/unbroken").iterdir()
    for name in ("last.ckpt", "best.ckpt"):
        same_state(unbroken / "checkpoints" / name, runs()[-1] / "checkpoints" / name, note=f"seed {seed}")
    expected = rows(unbroken)
    for folder in runs():
        for key, row in rows(folder).items():
            assert expected[key] == row, f"seed {seed}, {folder}"


def rows(folder: Path) -> dict[tuple[str, bool], dict[str, str]]:
    table = csv.DictReader((folder / "metrics.csv").open()) if (folder / "metrics.csv").is_file() else ()
    kept = [{key: value for key, value in row.items() if value} for row in table]
    return {(row["step"], "val/loss" in row): row for row in kept}


def test_a_run_killed_twice_ends_as_an_undisturbed_one() -> None:
    kill_and_continue(40, [signal.SIGKILL, signal.SIGTERM], seed=0)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_run_killed_many_times_ends_as_an_undisturbed_one() -> None:
    seed = random.SystemRandom().randrange(2**32)
    numbers = [signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT] * 3
    random.Random(seed).shuffle(numbers)
    kill_and_continue(160, numbers, seed)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_two_ranks_with_workers_stop_together_and_continue_exactly() -> None:
    """Ctrl-C reaches every process of a terminal's foreground, SIGTERM perhaps the first alone."""
    options = ["--trainer.devices=2", "--trainer.strategy=ddp", "--trainer.accelerator=cpu", "--data.num_workers=1"]
    for number in (signal.SIGINT, signal.SIGTERM):
        victim = Victim(40, *options, start_new_session=True)
        next(victim.writes())
        victim.end(number, group=number == signal.SIGINT)
    for experiment in ("exp", "unbroken"):
        command = [*COMMAND, *options, "--trainer.max_steps=40", "--ckpt_path=last"]
        subprocess.run([*command, f"--experiment={experiment}"], check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    (unbroken,) = Path("runs/unbroken").iterdir()
    assert len(runs()) == 3
    for name in ("last.ckpt", "best.ckpt"):
        same_state(unbroken / "checkpoints" / name, runs()[-1] / "checkpoints" / name)


def test_the_second_ctrl_c_ends_the_process_at_once() -> None:
    stop = StopOnSignal()
    pid = os.fork()
    if not pid:  # the child
        stop.on_train_start(Trainer(logger=False, enable_checkpointing=False), None)  # type: ignore[arg-type]
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)  # noted, and no more than that
        os.kill(os.getpid(), signal.SIGINT)
        if stop.received == signal.SIGTERM:
            os.kill(os.getpid(), signal.SIGINT)
        os._exit(0)
    _, code = os.waitpid(pid, 0)
    assert os.WTERMSIG(code) == signal.SIGINT


class Stopped(Callback):
    """Stops its own training after a batch, as a user does."""

    def on_train_batch_end(self, *args: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


def test_the_command_that_continues_is_quoted_for_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    folder = "my runs; touch owned"
    options = ["--trainer.max_steps=4", f"--runs_dir={folder}", "--trainer.callbacks+=tests.cli.test_stopping.Stopped"]
    with pytest.raises(SystemExit) as stop:
        run(["fit", *FIT, *options])
    assert stop.value.code == 143
    command = capsys.readouterr().out.rpartition("to continue: ")[2]
    (started,) = Path(folder, "exp").iterdir()
    assert shlex.split(command) == [
        *("vaezoo", "fit", "--config", str(started / "config.yaml")),
        *("--ckpt_path", str(started / "checkpoints" / "last.ckpt")),
    ]
