"""One readable line for a command that failed while it ran, with what to do about it."""

import errno
import pickle
import re

from vaezoo.cli.errors import unwrapped
from vaezoo.text import on_one_line

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What torch says where a file cannot be written, and where one cannot be read.
UNWRITTEN = re.compile(r"PytorchStreamWriter failed|file write failed|unexpected pos")
UNREAD = re.compile(r"PytorchStreamReader failed|failed finding central directory|invalid load key|Ran out of input")
LONGEST = 600


def explain(error: BaseException) -> str:
    """Say what went wrong and what helps.

    Args:
        error: What ended the command. Errors of constructors come wrapped in everything that jsonargparse tried.

    Returns:
        One line.
    """
    error = unwrapped(error)
    # torch goes on with its own stack
    text = on_one_line(re.split(r"\s+Exception raised from\s", str(error))[0], LONGEST)
    if (isinstance(error, OSError) and error.errno in FULL) or UNWRITTEN.search(text):
        return _full(error)
    if isinstance(error, pickle.UnpicklingError):
        return (
            "the checkpoint holds more than tensors and plain data, or is damaged; nothing in it was executed: "
            "give a checkpoint that vaezoo wrote"
        )
    if isinstance(error, (EOFError, RuntimeError)) and UNREAD.search(text):
        return f"the checkpoint is damaged or cut off ({text}): give another one"
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}; check the path and its permissions"
    if isinstance(error, OverflowError) or "Overflow" in text:
        return f"a number in the configuration or on the command line is too large ({text})"
    ours = type(error).__module__.partition(".")[0] in ("vaezoo", "datamodules")
    if text and (ours or isinstance(error, (ValueError, OSError, ModuleNotFoundError))):
        return text
    name = type(error).__name__
    return f"{text if name in ('RuntimeError', 'MisconfigurationException') and text else f'{name}: {text}'}{_HELP}"


_HELP = "; --debug shows where"


def _full(error: BaseException) -> str:
    reason = (isinstance(error, OSError) and error.strerror) or "the file system refused"
    where = f" {error.filename}" if isinstance(error, OSError) and error.filename else " a file of the run"
    return (
        f"cannot write{where} ({reason}): free the space or choose a folder on another disk; "
        "what was written before is whole, a checkpoint that was due is missing"
    )
