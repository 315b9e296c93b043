"""Which checkpoint of an experiment `--ckpt_path last` means."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lightning.pytorch.utilities import rank_zero_warn

from vaezoo.runs.checkpoint_io import DamagedCheckpointError, OpenCheckpoint, read_checkpoint
from vaezoo.runs.files import link
from vaezoo.runs.folder import RunFolder
from vaezoo.runs.resuming import ACCUMULATING, open_checkpoint, require_resumable, say
from vaezoo.text import on_one_line

_UNUSABLE = (OSError, ValueError, DamagedCheckpointError)


Differences = Callable[[dict[str, Any]], list[str]]
"""In what the run of a checkpoint differs from the configuration, in words."""


def resolve_last(experiment: Path, seed: Any, differences: Differences) -> tuple[OpenCheckpoint | None, Any]:
    """The experiment's furthest checkpoint, if any, read once, and the seed of its run.

    All ranks that this process starts share the choice, whatever the first rank has saved by then.

    Args:
        experiment: Folder of the experiment's runs.
        seed: Consider only runs with this seed, as several seeds share a folder. True means any.
        differences: Runs without any come first.
    """
    if "LOCAL_RANK" in os.environ and "VAEZOO_LAST" in os.environ:
        path = os.environ["VAEZOO_LAST"]
        opened = open_checkpoint(path) if path else None
    else:
        opened = furthest_checkpoint(experiment, seed, differences)
        os.environ["VAEZOO_LAST"] = str(opened.path) if opened else ""
    if opened is None:
        say(f"no checkpoint in {experiment} to continue from: starting afresh")
        return None, seed
    return opened, _seed(RunFolder.of(opened.path)) if seed is True else seed


def furthest_checkpoint(
    experiment: Path, seed: Any, differences: Differences = lambda checkpoint: []
) -> OpenCheckpoint | None:
    """Read the furthest checkpoint that can be resumed; warn about the others.

    Runs with the configuration's settings come first, then those with the fewest differences, which the caller has to
    check. Prints further checkpoints that were skipped. Clocks, names and folders do not matter, as they change: a run
    may be copied, or hold the best checkpoint of the run it resumes. At equal steps, the `last` checkpoint of the
    latest run wins.

    Args:
        experiment: Folder of the experiment's runs.
        seed: Consider only runs with this seed. True means any.
        differences: As in `resolve_last`; none by default.
    """
    skipped: list[Exception] = []
    runs = reversed(RunFolder.all_in(experiment))
    seen = {path: look for run in runs for path, look in _looks(run, seed, differences, skipped)}
    steps = {path: look.step for path, look in seen.items()}
    found = None
    for path in sorted(steps, key=lambda path: (len(seen[path].differences), -steps[path], _rank(path))):
        try:
            found = OpenCheckpoint(path, read_checkpoint(path))  # every byte of it is verified
            break
        except _UNUSABLE as error:
            skipped.append(error)
    for reason in skipped:
        rank_zero_warn(f"{reason}: {f'continuing from {found.path}' if found else 'it is left out'}")
    if found is None:
        return None
    if not seen[found.path].differences:
        _say_passed_over({path: look for path, look in seen.items() if look.step > steps[found.path]})
    return _as_last(found, steps)


class _Look(NamedTuple):
    """What a checkpoint says of itself."""

    step: int
    differences: list[str]


def _say_passed_over(further: dict[Path, _Look]) -> None:
    """One line for each run that is further and has other settings."""
    runs: dict[Path, _Look] = {}
    for path, look in further.items():
        run = RunFolder.of(path).path
        if look.differences and (run not in runs or look.step > runs[run].step):
            runs[run] = look
    for run, look in runs.items():
        say(on_one_line(f"passed over {run}, step {look.step}: {', '.join(look.differences)}", 300))


def _looks(
    run: RunFolder, seed: Any, differences: Differences, skipped: list[Exception]
) -> Iterator[tuple[Path, _Look]]:
    """Checkpoints of a run to continue from, and what they say; why others are left out goes to `skipped`."""
    try:
        counts = seed is True or _seed(run) == seed
    except _UNUSABLE as error:
        skipped.append(error)
        return
    for path in run.all_checkpoints() if counts else ():
        try:
            yield path, _peek(path, differences)
        except _UNUSABLE as error:
            skipped.append(error)


def _peek(path: Path, differences: Differences) -> _Look:
    """Steps behind a checkpoint and its settings; reads the names in it and no tensor."""
    content = read_checkpoint(path, mmap=True, verify=False)
    require_resumable(path, content)
    # The best checkpoint may fall between gradients that are summed up, which it does not hold: the last resort.
    return _Look(-1 if content.get(ACCUMULATING) else int(content["global_step"]), differences(content))


def _as_last(found: OpenCheckpoint, steps: dict[Path, int]) -> OpenCheckpoint:
    """Let a checkpoint be the last of its run where a kill came between the two saves of one step.

    Otherwise a complete run would keep a `last.ckpt` that is behind it. A damaged one stays to be looked at.
    """
    last = RunFolder.of(found.path).last
    if steps[found.path] <= steps.get(last, -1 if not last.exists() else steps[found.path]):
        return found
    try:
        link(found.path, last)
    except OSError:  # nothing can be written there, and nothing need be
        return found
    return OpenCheckpoint(last, found.content)


def _rank(path: Path) -> int:
    """Which of several checkpoints at one step is taken: the last one holds what the others noted there."""
    names = [RunFolder.of(path).last.name, RunFolder.of(path).previous.name]
    return names.index(path.name) if path.name in names else len(names)


def _seed(run: RunFolder) -> Any:
    if not run.config.is_file():
        return None
    config = run.read_config()
    if not isinstance(config, dict):
        raise ValueError(f"{run.config} holds no settings, so the seed of its run is unknown")
    return config.get("seed_everything")
