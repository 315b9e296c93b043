"""What the Trainer takes where the configuration leaves it open."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from jsonargparse import Namespace
from lightning.pytorch.profilers import PassThroughProfiler

from vaezoo.cli.console import debugging


class NoProfiler(PassThroughProfiler):
    """Profiles nothing. Lightning enters a profiler 140 times a step; its own makes and runs a generator each time."""

    _nothing = nullcontext()

    def profile(self, action_name: str) -> AbstractContextManager[None]:  # type: ignore[override]  # a generator there
        """Neither start nor stop anything."""
        return self._nothing


def trainer_defaults(config: Namespace) -> dict[str, Any]:
    """Arguments of the Trainer that differ from Lightning's defaults.

    Args:
        config: The Trainer's configuration.
    """
    found: dict[str, Any] = {}
    if config.log_every_n_steps is None and 0 < config.max_steps < 50:
        found["log_every_n_steps"] = config.max_steps  # Lightning's 50 would leave a short run without a log
    if isinstance(config.val_check_interval, int) and config.check_val_every_n_epoch == 1:
        # Counts batches over epochs: whether a run starts must not depend on how many batches an epoch has, which
        # batch_size and the number of ranks decide.
        found["check_val_every_n_epoch"] = None
    if config.enable_model_summary is None:
        found["enable_model_summary"] = debugging()  # the first lines say what it would
    if not config.barebones:  # which takes neither of these
        found["profiler"] = config.profiler or NoProfiler()
        if config.num_sanity_val_steps is None:
            found["num_sanity_val_steps"] = 1  # what fails in a validation fails in its first batch
    return found
