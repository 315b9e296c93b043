"""A quiet console: without --debug, hide messages without a remedy and print warnings as one line without a path."""

import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from vaezoo.cli.common import DEBUG
from vaezoo.text import on_one_line

NOISE = re.compile(
    r"Seed set to"  # the first lines of fit name seed and device
    r"|\b[GTHI]PU available: |LOCAL_RANK: \d+ - CUDA_VISIBLE_DEVICES|Initializing distributed: |distributed_backend="
    r"|litlogger|litmodels"  # adverts
    r"|was configured so \d+ batch"  # as the user asked
    r"|`weights_only` was not set"  # a checkpoint is never executed
    r"|Total length of `\w+` across ranks is zero"  # data without validation or test images, as it says of itself
    r"|does not have many workers"  # images in memory need none
    r"|You have overridden `\w+` in both"  # the datamodule's is meant to win
    r"|is smaller than the logging interval"  # steps are logged across epochs
    r"|isinstance\(treespec, LeafSpec\)"  # Lightning's own affair
)
LONGEST = 600
_LOGGERS = tuple(
    f"lightning.{name}"
    for name in (
        *("fabric.utilities.rank_zero", "fabric.utilities.seed", "fabric.utilities.distributed"),
        *("pytorch.utilities.rank_zero", "pytorch.accelerators.cuda"),
        "pytorch.trainer.connectors.checkpoint_connector",
    )
)


def debugging() -> bool:
    """Whether everything is shown, as --debug or the environment asks for."""
    return os.environ.get(DEBUG, "") not in ("", "0")


@contextmanager
def console(debug: bool) -> Iterator[None]:
    """Leave out the noise while a command runs; with `debug` show everything, in processes that it starts as well."""
    before, formatted, loggers = os.environ.get(DEBUG), warnings.formatwarning, list(map(logging.getLogger, _LOGGERS))
    with warnings.catch_warnings():
        if debug:
            os.environ[DEBUG] = "1"
        else:
            warnings.filterwarnings("ignore", message=f"(?s:.*)(?:{NOISE.pattern})")
            warnings.formatwarning = lambda message, *_, **__: f"warning: {on_one_line(str(message), LONGEST)}\n"
            for logger in loggers:
                logger.addFilter(_is_news)
        try:
            yield
        finally:
            warnings.formatwarning = formatted
            for logger in loggers:
                logger.removeFilter(_is_news)
            os.environ.pop(DEBUG, None)
            if before is not None:
                os.environ[DEBUG] = before


def _is_news(record: logging.LogRecord) -> bool:
    return not NOISE.search(record.getMessage())
