"""`make torture N=100`: random runs, killed at random, moved and copied, that must end as undisturbed ones do.

Each trial is a random model with random callbacks, precision and limits. One run of it is left alone. The other is
killed (SIGKILL) up to eight times, at any time or within a step, a validation, or the write of a checkpoint or log,
and continued each time by the same command; in between, its folder may be moved, renamed or copied. In the end weights,
optimizers, schedulers, the best checkpoint and every logged value must be the same, bit for bit.
"""

import argparse
import csv
import re
import shutil
import sys
import tempfile
from pathlib import Path
from random import Random, SystemRandom

import torch

from tests.helpers.resuming import same
from tests.torture.settings import MODELS, command
from tests.torture.victim import Kill, fit
from vaezoo.runs.checkpoint_io import read_checkpoint
from vaezoo.runs.folder import RunFolder

Row = tuple[tuple[str, str], ...]
KILLS = 8
STATE = (
    "global_step",
    "state_dict",
    "optimizer_states",
    "lr_schedulers",
    "current_model_state",
    "Toy",
    "stopped_early",
)


def trial(seed: int, folder: Path) -> str:
    """One trial; returns what was done.

    Raises:
        AssertionError: The ends differ, or a command fails.
    """
    chance = Random(seed)
    model = chance.choice(list(MODELS))
    args = command(chance, model)
    whole, broken = folder / "whole", folder / "broken"
    for place in (whole, broken):
        place.mkdir(parents=True)
    (folder / "command.txt").write_text(" ".join(args))
    code, said, seconds = fit(args, whole)
    assert code == 0, f"undisturbed: {said[-2000:]}"
    done = []
    resumed = set()
    for number in range(KILLS + 1):
        kill = Kill.at_random(chance, seconds) if number < KILLS else None
        code, said, _ = fit(args, broken, kill)
        resumed |= {int(step) for step in re.findall(r"continuing from .*, step (\d+)", said)}
        assert code in (0, -9), f"{kill}: {said[-2000:]}"
        done.append(str(kill))
        if code == 0:
            break
        broken = _disturb(chance, broken, done)
    _compare(_end(args, whole), _end(args, broken), resumed)
    return f"{model}, killed and disturbed {len(done) - 1} times ({', '.join(done[:-1])})"


def _disturb(chance: Random, folder: Path, done: list[str]) -> Path:
    """Move the whole folder, or rename or copy one of the runs, now and then."""
    runs = sorted((folder / "runs" / "exp").glob("*/"))
    what = chance.choice(("", "", "", "moved", "renamed", "copied"))
    stamp = f"{chance.choice((1970, 2000, 2999))}0101-{chance.randrange(10**6):06}"
    if what == "moved":
        folder = folder.rename(folder.with_name(f"moved{len(done)}"))
    elif what and runs:
        run = chance.choice(runs)
        if what == "renamed":
            run.rename(run.with_name(stamp))
        else:
            shutil.copytree(run, run.with_name(stamp))
    done += [what] * bool(what)
    return folder


def _end(args: list[str], folder: Path) -> RunFolder:
    """The run that the command says is complete; it trains no more."""
    runs = set((folder / "runs" / "exp").iterdir())
    code, said, _ = fit(args, folder)
    found = re.search(r"the run of (\S+) is complete", said)
    assert code == 0, said[-2000:]
    assert found, f"not complete: {said[-2000:]}"
    assert set((folder / "runs" / "exp").iterdir()) == runs, "a complete run was trained again"
    return RunFolder.of(folder / found[1])


def _compare(whole: RunFolder, broken: RunFolder, resumed: set[int]) -> None:
    for a, b in ((whole.last, broken.last), (whole.best, broken.best)):
        assert a.is_file() == b.is_file(), f"{b} is there: {b.is_file()}"
        if a.is_file():
            same(*({key: found.get(key) for key in STATE} for found in map(read_checkpoint, (a, b))), a.name)
    expected = _rows(whole)
    seen = set()
    for run in RunFolder.all_in(broken.path.parent):
        rows = _rows(run)
        assert rows <= expected, f"{run.log}: {rows - expected}"
        seen |= rows
    # Lightning logs a step after the checkpoint that may be written in it: a kill between the two costs that row.
    saved = resumed | {read_checkpoint(broken.last)["global_step"]}
    missing = [dict(row) for row in expected - seen if int(dict(row)["step"]) + 1 not in saved or _validated(row)]
    assert not missing, f"rows were lost: {missing}"


def _rows(run: RunFolder) -> set[Row]:
    """Rows of a log without the empty columns; several validations may follow one step where gradients add up."""
    if not run.log.is_file():
        return set()
    with run.log.open(newline="") as file:
        return {tuple((key, value) for key, value in row.items() if value) for row in csv.DictReader(file)}


def _validated(row: Row) -> bool:
    return "val/loss" in dict(row)


def main() -> int:
    """Run the trials; 1 where any failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None, help="seed of the first trial; the others follow it")
    options = parser.parse_args()
    first = SystemRandom().randrange(10**6) if options.seed is None else options.seed
    torch.set_num_threads(1)  # threads do not survive a fork
    failed = []
    for seed in range(first, first + options.trials):
        folder = Path(tempfile.mkdtemp(prefix="torture-"))
        try:
            print(f"{seed}: {trial(seed, folder)}", flush=True)
            shutil.rmtree(folder)
        except AssertionError as error:
            failed.append(seed)
            print(f"{seed}: FAILED, see {folder}: {error}", flush=True)
    print(f"{options.trials - len(failed)} of {options.trials} trials ended as undisturbed runs do", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
