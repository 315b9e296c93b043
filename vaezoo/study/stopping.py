"""Early stopping: schedulers of Ray Tune, which read what runs log."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from vaezoo.study.folder import JobFolder

SCHEDULERS = {"ASHA": "AsyncHyperBandScheduler", "MedianStoppingRule": "MedianStoppingRule"}
NEVER = 10**12  # steps: a run ends by its own configuration


class Stopper:
    """Decides which runs have fallen behind.

    A scheduler sees all that was logged from the first step on, that of finished runs included, so it decides alike in
    a study that was interrupted.

    Args:
        options: Class, metric, mode and options of the scheduler; empty for none.
        folders: Folders of all runs.
    """

    def __init__(self, options: Mapping[str, Any], folders: Sequence[Path]) -> None:
        self.metric: str = options.get("metric", "")
        self._scheduler: Any = None
        self._trials: dict[Path, Any] = {}
        self._seen = dict.fromkeys(folders, 0)
        self._sizes: dict[Path, int] = {}
        self._behind: set[Path] = set()
        if options:
            self._scheduler = scheduler(options)
            self._trials = {folder: _trial(i) for i, folder in enumerate(folders)}
        for trial in self._trials.values():
            self._scheduler.on_trial_add(_CONTROLLER, trial)

    def behind(self, folder: Path) -> bool:
        """Whether a run shall stop, after all that it has logged."""
        if self._scheduler is None or folder in self._behind or not self._grown(folder):
            return folder in self._behind
        for step, value in JobFolder(folder).logged(self.metric):
            if step > self._seen[folder]:  # an attempt that was resumed logs some steps again
                self._seen[folder] = step
                result = {"step": step, self.metric: value}
                if self._scheduler.on_trial_result(_CONTROLLER, self._trials[folder], result) == "STOP":
                    self._behind.add(folder)
        return folder in self._behind

    def _grown(self, folder: Path) -> bool:
        size, self._sizes[folder] = self._sizes.get(folder), sum(f.stat().st_size for f in JobFolder(folder).logs())
        return size != self._sizes[folder]


def scheduler(options: Mapping[str, Any]) -> Any:
    """A scheduler of Ray Tune.

    Raises:
        ValueError: It has no such option.
    """
    from ray.tune import schedulers

    given = dict(options)
    name = given.pop("class")
    defaults = {"ASHA": {"max_t": NEVER, "stop_last_trials": False}}.get(name, {})
    try:
        return getattr(schedulers, SCHEDULERS[name])(**{"time_attr": "step", **defaults, **given})
    except (TypeError, AssertionError) as error:
        raise ValueError(f"scheduler: {error}") from error


# Where too few runs are there to compare with, the median rule asks for others to run in the place of this one.
_CONTROLLER = SimpleNamespace(get_live_trials=list)


def _trial(number: int) -> Any:
    from ray.tune.experiment import Trial

    return Trial("run", trial_id=str(number), stub=True)
