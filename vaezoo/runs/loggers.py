"""TensorBoard and MLflow, in the run's own folder: where their files go, and how settings and pictures reach them."""

import logging
import os
import socket
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from jsonargparse import Namespace
from lightning.pytorch.loggers import Logger, MLFlowLogger, TensorBoardLogger
from torch import Tensor

from vaezoo.runs.folder import RunFolder

LIGHTNINGS_NAME = "lightning_logs"  # of an experiment that nobody has named
FILE_STORE = "MLFLOW_ALLOW_FILE_STORE"
# What MLflow would note of the machine: who runs what, where.
NAMELESS = {"mlflow.user": "unknown", "mlflow.source.name": "vaezoo"}


class TensorBoardLog(TensorBoardLogger):
    """Lightning's logger of TensorBoard, whose files do not name the machine."""

    @property
    def experiment(self) -> Any:
        """The writer, on the first rank."""
        with _nameless_host():
            return super().experiment


class MLflowLog(MLFlowLogger):
    """Lightning's logger of MLflow, for values whose names begin with that of another; what fails is a warning.

    MLflow's files are named after values: beside the file `val/kl` there can be no folder `val/kl/`, so that
    `val/kl/nats` is logged as `val/kl.nats`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        logging.getLogger(MLFlowLogger.__module__).setLevel(logging.ERROR)  # it warns that a new experiment is new
        self._warned = False

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Log values, by names that are no folders."""
        named = {_one_slash(name): value for name, value in metrics.items()}
        self._try(lambda: super(MLflowLog, self).log_metrics(named, step))

    def log_hyperparams(self, params: Any) -> None:
        """Log settings."""
        self._try(lambda: super(MLflowLog, self).log_hyperparams(params))

    def finalize(self, status: str = "success") -> None:
        """End the run."""
        self._try(lambda: super(MLflowLog, self).finalize(status))

    def _try(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # a server in trouble, a full disk: none of them is worth a training
            if not self._warned:
                warnings.warn(f"MLflow could not log: {type(error).__name__}: {error}", stacklevel=3)
            self._warned = True


# By the names of Lightning's loggers: what stands in for them, packages of which one is enough, the extra of these.
LOGS: dict[str, tuple[type[Logger], tuple[str, ...], str]] = {
    "TensorBoardLogger": (TensorBoardLog, ("tensorboard", "tensorboardX"), "tensorboard"),
    "MLFlowLogger": (MLflowLog, ("mlflow",), "mlflow"),
}


@runtime_checkable
class ImageLogger(Protocol):
    """A logger that takes images, as `WandbLogger` does."""

    def log_image(self, key: str, images: list[Tensor], step: int | None = None) -> None:
        """Log images (3, H, W) in [0, 1]."""


def fill_in_paths(logger: Namespace, folder: Path, experiment: str) -> None:
    """Let a logger of TensorBoard or MLflow write into the run's folder, unless the user says where.

    Args:
        logger: The logger's configuration, which is changed.
        folder: The run's folder.
        experiment: The experiment's name.

    Raises:
        ModuleNotFoundError: Its package is missing.
    """
    name, run = logger.class_path.rpartition(".")[2], RunFolder(folder)
    if name not in LOGS:
        return
    kind, packages, extra = LOGS[name]
    if not any(find_spec(package) for package in packages):
        raise ModuleNotFoundError(f"{name} needs one more package: pip install 'vaezoo[{extra}]'")
    logger.class_path = f"{kind.__module__}.{kind.__qualname__}"
    args = logger.init_args
    if name == "TensorBoardLogger" and args.save_dir == "." and args.version is None:
        place = run.tensorboard
        args.save_dir, args.version = str(place.parent), place.name
        args.name = "" if args.name == LIGHTNINGS_NAME else args.name
    if name == "MLFlowLogger":
        _fill_in_mlflow(args, run, experiment)


def _fill_in_mlflow(args: Namespace, run: RunFolder, experiment: str) -> None:
    if args.tracking_uri is None:
        os.environ.setdefault(FILE_STORE, "true")  # MLflow 3 asks for it: it would rather have a database
        if args.save_dir == "./mlruns":
            args.save_dir = str(run.mlflow)
    if args.experiment_name == LIGHTNINGS_NAME:
        args.experiment_name = experiment
    args.run_name = args.run_name or run.path.name
    args.tags = {**NAMELESS, **(args.tags or {})}


def log_settings(logger: Logger, settings: Mapping[str, Any]) -> None:
    """Hand a run's settings to TensorBoard or MLflow, as hyperparameters beside the model's own."""
    if isinstance(logger, (TensorBoardLogger, MLFlowLogger)):
        logger.log_hyperparams(dict(settings))


def log_picture(logger: Logger, key: str, picture: Tensor, step: int) -> None:
    """Hand a picture (3, H, W) in [0, 1] to a logger; nothing for one that takes none."""
    if isinstance(logger, TensorBoardLogger):
        logger.experiment.add_image(key, picture, step)
    elif isinstance(logger, MLFlowLogger):
        pixels = picture.mul(255).round().byte().permute(1, 2, 0).cpu().numpy()
        logger.experiment.log_image(str(logger.run_id), pixels, key=key, step=step, synchronous=True)
    elif isinstance(logger, ImageLogger):
        logger.log_image(key, [picture], step=step)


def _one_slash(name: str) -> str:
    stage, slash, rest = name.partition("/")
    return stage + slash + rest.replace("/", ".")


@contextmanager
def _nameless_host() -> Iterator[None]:
    """TensorBoard names its files after the machine: call it by no name."""
    before = socket.gethostname
    socket.gethostname = lambda: "host"
    try:
        yield
    finally:
        socket.gethostname = before
