"""`vaezoo fit|validate|test|predict`: models, data, callbacks and run folders put together."""

import json
import os
import shlex
import signal
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
import yaml
from jsonargparse import Namespace, get_loader, set_loader, set_parsing_settings
from lightning.pytorch import Trainer
from lightning.pytorch.cli import ArgsType, LightningArgumentParser, LightningCLI
from lightning.pytorch.loggers import Logger, WandbLogger
from lightning.pytorch.plugins import CheckpointIO
from lightning.pytorch.utilities.exceptions import SIGTERMException

import vaezoo.pictures  # noqa: F401  # callbacks that a configuration may name
from vaezoo.callbacks import StopOnSignal
from vaezoo.cli.callbacks import all_callbacks, check_callbacks, settings_of
from vaezoo.cli.defaults import trainer_defaults
from vaezoo.cli.errors import check_sections
from vaezoo.cli.jsonargparse_private import set_help, set_type
from vaezoo.cli.opening import Opening
from vaezoo.cli.predictions import save_codes
from vaezoo.cli.starting import add_start_options, check_start_options, open_last, start_model, stop_if_complete
from vaezoo.models import VAE
from vaezoo.models.lightning_private import give_save_dir_a_default
from vaezoo.runs.checkpoint_io import AtomicCheckpointIO, OpenCheckpoint, remove_stale_drafts
from vaezoo.runs.files import check_aliases
from vaezoo.runs.folder import RunFolder, new_run_folder, remove_if_empty
from vaezoo.runs.log import RunLog
from vaezoo.runs.loggers import fill_in_paths, log_settings
from vaezoo.runs.options import checkpoint_in
from vaezoo.runs.resuming import local_path, open_checkpoint, require_same_model
from vaezoo.specs import find, import_options, with_public_names
from vaezoo.tracking.artifacts import Policy
from vaezoo.tracking.wandb import Facts, fill_in_logger, start_run, store_at_the_end

set_parsing_settings(add_print_completion_argument=True)
_load_yaml = get_loader("yaml")


def _read_yaml(text: str) -> Any:
    """Plain data of bounded size; configurations of earlier versions name files that have moved since."""
    check_aliases(text)
    return with_public_names(_load_yaml(text))


set_loader("yaml", _read_yaml, (yaml.YAMLError,))
give_save_dir_a_default()


class ZooCLI(LightningCLI):
    """`vaezoo fit|validate|test|predict`, with one folder per run, `runs/<experiment>/<time>`."""

    run_dir: Path
    _opened: OpenCheckpoint | None = None  # read once, for the checks here and for Lightning
    _parsers: tuple[LightningArgumentParser, ...] = ()  # one a subcommand
    _stored: Policy = False  # checkpoints for Weights & Biases

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(*args, **kwargs)
        finally:
            if hasattr(self, "run_dir"):
                remove_if_empty(self.run_dir)

    def subcommands(self) -> dict[str, set[str]]:  # type: ignore[override]  # static in Lightning, which asks the object
        """Those that `parser_kwargs` names: building a parser takes longer than reading a configuration with it."""
        return {name: skipped for name, skipped in super().subcommands().items() if name in self.parser_kwargs}

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Options of the run's folder; the data's image shape and labels set the model's."""
        self._parsers = (*self._parsers, parser)
        parser.add_argument(
            "--experiment",
            type=str,
            default=None,
            help="Name of the run's folder. Defaults to the name of the configuration file.",
        )
        parser.add_argument("--runs_dir", type=str, default="runs", help="Folder of all runs.")
        add_start_options(parser)
        parser.add_argument(
            "--allow_changes",
            type=bool,
            default=False,
            help="Let fit resume a run with other data, batch size or precision, or one that was stopped early.",
        )
        parser.link_arguments("data.image_shape", "model.init_args.image_shape", apply_on="instantiate")
        # For models that have it; jsonargparse leaves out a link whose target the chosen class does not take.
        parser.link_arguments("data.label_sizes", "model.init_args.label_sizes", apply_on="instantiate")
        # 1 is one batch and 1.0 is all of them. Lightning's Optional[Union[int, float]] may come from typing's cache as
        # float first, whenever some other package has asked for that order before.
        set_type(parser, "trainer.limit_", int | float | None)

    def parse_arguments(self, parser: LightningArgumentParser, args: ArgsType) -> None:
        """Parse, name the experiment after its configuration file or its model, and find its last checkpoint."""
        for command in self._parsers:
            set_help(command, "ckpt_path", "Run or checkpoint to load; last: the furthest with these settings.")
            set_help(command, "config", "Experiment (see vaezoo experiments) or YAML file; later ones win.")
            set_help(command, "seed_everything", "Seed of weights, noise and data order; true picks one.")
            set_help(command, "weights_only", "Always true: checkpoints are read safely. To load weights: --init_from.")
        self.config = parser.parse_args(args)  # type: ignore[arg-type]  # always a list here
        config = self.config[self.config.subcommand]
        check_sections(config)
        check_start_options(args if isinstance(args, list) else [], config)
        if config.experiment is None:
            files = config.config or []
            config.experiment = (
                Path(str(files[0])).stem if files else config.model.class_path.rpartition(".")[2].lower()
            )
        if config.get("ckpt_path"):
            config.ckpt_path = checkpoint_in(local_path(config.ckpt_path), self.config.subcommand == "fit")
        if config.get("ckpt_path") == "last":
            self._opened = open_last(config, self.config.subcommand)

    def _parse_ckpt_path(self) -> None:
        """The model comes from the configuration alone; Lightning would merge the checkpoint's arguments into it."""

    def before_instantiate_classes(self) -> None:
        """Choose the run's folder, send every logger there, and let no checkpoint execute anything."""
        config = self.config[self.subcommand]
        config.weights_only = True
        self.config_dump = {}  # from which Lightning would save hyperparameters; models save their own
        experiment = Path(config.runs_dir) / config.experiment
        # Says what is wrong with a checkpoint before anything is made.
        if self._opened is None:
            self._opened = open_checkpoint(config.get("ckpt_path"))
        if self.subcommand == "fit":
            check_callbacks(config.trainer.callbacks or [], self._opened is not None)
            if self._opened is not None:
                stop_if_complete(config, self._opened)
            for run in RunFolder.all_in(experiment):
                remove_stale_drafts(run.checkpoints)
        self.run_dir = new_run_folder(experiment)
        self._fill_in_model(config, self._opened.content if self._opened else None)
        self._given_logger = deepcopy(config.trainer.logger)
        for logger in config.trainer.logger if isinstance(config.trainer.logger, list) else [config.trainer.logger]:
            if isinstance(logger, Namespace) and logger.class_path.endswith(".WandbLogger"):
                if config.name and logger.init_args.get("name") is None:
                    logger.init_args.name = config.name
                command, checkpoint = str(self.subcommand), config.get("ckpt_path")
                self._stored = fill_in_logger(logger, self.run_dir, config.experiment, command, checkpoint)
            elif isinstance(logger, Namespace):
                fill_in_paths(logger, self.run_dir, config.experiment)

    def _fill_in_model(self, config: Namespace, checkpoint: dict[str, Any] | None) -> None:
        """Take from the checkpoint and from the data what the configuration leaves to them."""
        arguments: Any = config.model.get("init_args", {})
        if checkpoint is not None:
            find(VAE, config.model.class_path).update_arguments(arguments, checkpoint)
        if "label_dim" in arguments and arguments["label_dim"] is None:  # if given, the model compares it with the data
            for parser in self._parsers:
                parser.link_arguments("data.label_size", "model.init_args.label_dim", apply_on="instantiate")

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """A Trainer with a CSV log, checkpoints and a progress bar unless they are switched off."""
        settings = self._checked_settings(self.config[self.subcommand])
        # What was filled in for this run's logger, its folder and name, is not for a run that repeats it.
        self.config[self.subcommand].trainer.logger = self._given_logger
        config = self.config_init[self.subcommand].trainer
        given = config.logger
        if given is not False:
            others = [
                logger for logger in (given if isinstance(given, list) else [given]) if isinstance(logger, Logger)
            ]
            kwargs["logger"] = [RunLog(self.run_dir), *others]
        elif config.default_root_dir is None:
            kwargs["default_root_dir"] = self.run_dir  # no logger says where files go, and nothing goes beside the runs
        kwargs |= trainer_defaults(config)
        self._signals = StopOnSignal()
        opening = Opening(self.run_dir, self.datamodule, self.config[self.subcommand].seed_everything)
        compiles = self.config[self.subcommand].compile
        kwargs["callbacks"] = [*all_callbacks(config, self._signals, settings, compiles), opening]
        plugins = config.plugins if isinstance(config.plugins, list) else [config.plugins] if config.plugins else []
        if not any(isinstance(plugin, CheckpointIO) for plugin in plugins):
            kwargs["plugins"] = [*plugins, AtomicCheckpointIO(self._opened)]
        self._opened = None  # its memory is Lightning's from here on
        trainer: Trainer = super().instantiate_trainer(**kwargs)
        self._track(trainer)
        return trainer

    def _checked_settings(self, config: Namespace) -> dict[str, Any]:
        """Settings that checkpoints note; the model and they must be those of the checkpoint to start from."""
        data = config.data.get("init_args")
        if data is not None and "source" in data:
            data.source = self.datamodule.source  # the saved configuration says "file" or "render", never "auto"
        settings = settings_of(config)
        if self._opened is not None:
            require_same_model(self.model, self._opened.content)
        if self.subcommand == "fit":
            start_model(self.model, config, settings, self._opened)
        config.allow_changes = False  # this once: the saved configuration repeats the run as it is now
        return settings

    def _track(self, trainer: Trainer) -> None:
        """Start the run on Weights & Biases, where it is logged there; hand its settings to other loggers."""
        config = self.config[self.subcommand]
        facts = Facts.of(config.experiment, config.seed_everything, self.model, self.datamodule)
        for logger in trainer.loggers:
            if isinstance(logger, RunLog):
                _ = logger.experiment  # comes first: it takes files in its folder for those of an earlier run
            if isinstance(logger, WandbLogger) and trainer.is_global_zero:
                complete = json.loads(self.parser.dump(self.config, format="json"))[self.subcommand]
                start_run(logger, self.run_dir, facts, complete)
            log_settings(logger, {**self.model.hparams, **facts._asdict(), **settings_of(config)})

    def fit(self, **kwargs: Any) -> None:
        """Train; where a signal stops it, say how to continue and exit as the signal's default action would."""
        try:
            self.trainer.fit(**kwargs)
        except SIGTERMException as error:
            if "LOCAL_RANK" in os.environ and not self.trainer.is_global_zero:
                raise SystemExit(0) from error  # any other code, and the launcher would kill the first rank
            number = signal.Signals(self._signals.received or signal.SIGTERM)
            run = RunFolder(self.run_dir)
            again = ["--config", str(run.config), "--ckpt_path", str(run.last)]
            how = shlex.join(["vaezoo", "fit", *import_options(), *again])
            print(f"stopped by {number.name} after step {self.trainer.global_step}", end="; ")
            print(f"to continue: {how}" if run.last.is_file() else "no checkpoint was saved", flush=True)
            raise SystemExit(128 + number) from error

    def predict(self, **kwargs: Any) -> None:
        """Save the codes of the test images, of this rank's share where there are several."""
        batches: list[torch.Tensor] = [torch.as_tensor(codes) for codes in self.trainer.predict(**kwargs) or []]
        file = RunFolder(self.run_dir).codes(self.trainer.global_rank if self.trainer.world_size > 1 else None)
        save_codes(file, batches, self.model, self.datamodule, self.trainer.predict_dataloaders)
        print(f"codes: {file} (scores of them: vaezoo evaluate --codes {shlex.quote(str(file))})")

    def after_fit(self) -> None:
        """Print the last scores, and where everything is."""
        if self.trainer.is_global_zero:  # and no collective call, such as log_dir, from here on
            for name, value in sorted(self.trainer.callback_metrics.items()):
                if name.startswith("val/"):
                    print(f"{name:24}{value.item():12.4g}")
            print(f"run: {self.run_dir}")
            for picture in RunFolder(self.run_dir).all_pictures():
                print(f"     {picture}")
            store_at_the_end(self.trainer, self.model, RunFolder(self.run_dir), self._stored)
