"""What the Trainer profiles with if it is not told to."""

from contextlib import AbstractContextManager, nullcontext

from lightning.pytorch.profilers import PassThroughProfiler


class NoProfiler(PassThroughProfiler):
    """Profiles nothing. Lightning enters a profiler 140 times a step; its own makes and runs a generator each time."""

    _nothing = nullcontext()

    def profile(self, action_name: str) -> AbstractContextManager[None]:  # type: ignore[override]  # a generator there
        """Neither start nor stop anything."""
        return self._nothing
