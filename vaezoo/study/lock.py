"""A lock that the system lets go of when its last holder dies."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POLL = 0.2  # seconds


@contextmanager
def locked(path: Path, patience: float = 0.0) -> Iterator[int]:
    """Hold a file's lock; processes that inherit the handle hold it as well.

    Args:
        path: The file, which is made.
        patience: Seconds to wait for others to let go.

    Raises:
        RuntimeError: Somebody else holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, end = os.open(path, os.O_RDWR | os.O_CREAT), time.monotonic() + patience
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise RuntimeError(f"another process writes in {path.parent}") from None
                time.sleep(POLL)
        yield handle
    finally:
        os.close(handle)
