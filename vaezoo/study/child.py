"""`python -m vaezoo.study.child PARENT ARG…` becomes `python -m vaezoo ARG…`, which dies with its parent."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(args: list[str]) -> None:
    """Bind this process to its parent and run vaezoo in its place.

    This is a process of its own since code between fork and exec may deadlock where the parent has threads, as workers
    of Ray have.

    Args:
        args: Process that must be alive, and the arguments of vaezoo.
    """
    parent, *command = args
    if sys.platform.startswith("linux"):  # elsewhere the lock alone keeps two runs apart
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):  # it died before it could be watched
            sys.exit("the study has ended")
    os.execv(sys.executable, [sys.executable, "-m", "vaezoo", *command])


if __name__ == "__main__":
    main(sys.argv[1:])
