"""Private names of other packages: each in one module, with one test that says which release has moved it."""

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from jsonargparse import ArgumentError, ArgumentParser
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.cli import LightningCLI
from lightning.pytorch.loggers import TensorBoardLogger, WandbLogger
from lightning.pytorch.utilities.exceptions import SIGTERMException

import vaezoo
from tests.helpers.zoo import MODELS, a_batch, in_order
from vaezoo.callbacks.findings import norms
from vaezoo.cli import errors
from vaezoo.cli.jsonargparse_private import set_type
from vaezoo.cli.main import run
from vaezoo.cli.trainer import ZooCLI
from vaezoo.models import BetaVAE, lightning_private as fence

ROOT = Path(__file__).parent.parent
FILES = {
    str(file.relative_to(ROOT)): ast.parse(file.read_text())
    for package in ("vaezoo", "datamodules")
    for file in sorted((ROOT / package).rglob("*.py"))
}
FENCES = {
    "vaezoo/models/lightning_private.py": "lightning",
    "vaezoo/cli/jsonargparse_private.py": "jsonargparse",
    "vaezoo/callbacks/findings.py": "torch",
    "vaezoo/callbacks/compile.py": "torch",
}
OVERRIDDEN = {"_parse_ckpt_path"}  # of ZooCLI
PUBLIC = {"_replace", "_asdict"}  # of named tuples
LAYOUT = {"loops", "fit_loop", "epoch_progress", "epoch_loop.batch_progress", "epoch_loop.val_loop.batch_progress"}


def moved(library: str, name: str) -> str:
    return f"{library} {version(library)} has moved {name}: mend the module that uses it"


def needs(library: str, owner: Any, name: str) -> None:
    assert hasattr(owner, name), moved(library, name)


class Asks(Callback):
    """Notes the answer to a question after every batch."""

    def __init__(self, question: Callable[[Trainer], Any]) -> None:
        self.question = question
        self.answers: list[Any] = []

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        self.answers.append(self.question(trainer))


def fitted(folder: Path, *callbacks: Callback, checkpoint: Path | None = None, **options: Any) -> Trainer:
    """The Trainer after two epochs of five batches, with a validation after every second batch."""
    limits = {"max_epochs": 2, "val_check_interval": 2, "num_sanity_val_steps": 0} | options
    quiet: dict[str, Any] = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    quiet |= {"enable_checkpointing": False, "accelerator": "cpu"}
    trainer = Trainer(default_root_dir=folder, callbacks=list(callbacks), **quiet, **limits)
    batches = [a_batch(seed=seed) for seed in range(5)]
    trainer.fit(MODELS["BetaVAE"](), in_order(batches, shuffle=True), in_order(batches[:2]), ckpt_path=checkpoint)
    return trainer


def test_trainer(tmp_path: Path) -> None:
    model = MODELS["BetaVAE"]()
    needs("lightning", model, "_trainer")
    assert not fence.has_trainer(model)
    asks = Asks(lambda trainer: fence.has_trainer(trainer.lightning_module))
    fitted(tmp_path, asks, max_steps=1)
    assert asks.answers == [True], moved("lightning", "_trainer")


def test_logger_connector(tmp_path: Path) -> None:
    needs("lightning", Trainer(logger=False, barebones=True), "_logger_connector")
    asks = Asks(lambda trainer: trainer._logger_connector.should_update_logs)
    fitted(tmp_path, asks, max_epochs=1, log_every_n_steps=2)
    assert asks.answers == [False, True, False, True, False], moved("lightning", "_logger_connector")


def test_save_dir_of_tensorboard() -> None:
    fence.give_save_dir_a_default()
    first = list(inspect.signature(TensorBoardLogger.__init__).parameters.values())[1]
    assert (first.name, first.default) == ("save_dir", "."), moved("lightning", "save_dir of TensorBoardLogger")
    assert inspect.signature(TensorBoardLogger.__init__).parameters["name"].default == "lightning_logs"


def test_should_accumulate(tmp_path: Path) -> None:
    needs("lightning", Trainer(logger=False, barebones=True).fit_loop, "_should_accumulate")
    asks = Asks(fence.accumulates)
    fitted(tmp_path, asks, accumulate_grad_batches=2, max_epochs=1)
    # The last batch of an epoch steps in any case.
    assert asks.answers == [True, False, True, False, False], moved("lightning", "_should_accumulate")


def test_data_fetcher() -> None:
    needs("lightning", Trainer(logger=False, barebones=True).fit_loop, "_data_fetcher")
    assert not fence.validates_now(Trainer(logger=False, barebones=True)), moved("lightning", "_data_fetcher")


def test_should_check_val_fx(tmp_path: Path) -> None:
    needs("lightning", Trainer(logger=False, barebones=True).fit_loop.epoch_loop, "_should_check_val_fx")
    asks = Asks(fence.validates_now)
    fitted(tmp_path, asks, max_epochs=1)
    assert asks.answers == [False, True, False, True, False], moved("lightning", "_should_check_val_fx")


def test_signal_connector(tmp_path: Path) -> None:
    needs("lightning", Trainer(logger=False, barebones=True), "_signal_connector")
    asks = Asks(lambda trainer: fence.ask_to_stop(trainer) if trainer.global_step == 3 else None)
    with pytest.raises(SIGTERMException):
        fitted(tmp_path, asks)
    assert len(asks.answers) == 3, moved("lightning", "_signal_connector.received_sigterm")


def saved(trainer: Trainer) -> dict[str, Any]:
    """The checkpoint that would be written now."""
    path = Path(trainer.default_root_dir) / "now.ckpt"
    trainer.save_checkpoint(path)
    return dict(torch.load(path, weights_only=True))


def test_loops(tmp_path: Path) -> None:
    asks = Asks(saved)
    trainer = fitted(tmp_path, asks)
    checkpoints = [*asks.answers, saved(trainer)]
    loops = [checkpoint["loops"]["fit_loop"] for checkpoint in checkpoints]
    assert all(loop.keys() >= LAYOUT - {"loops", "fit_loop"} for loop in loops), moved("lightning", 'the "loops"')
    assert [fence.epochs_done(c) for c in checkpoints] == [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2], moved(
        "lightning", 'the "loops"'
    )


def test_loops_of_a_validation(tmp_path: Path) -> None:
    """A run that continues validates first where it is told to begin again, and trains first otherwise."""
    path, name = tmp_path / "stopped.ckpt", "epoch_loop.val_loop.batch_progress"
    fitted(tmp_path, max_steps=2).save_checkpoint(path)
    checkpoint = torch.load(path, weights_only=True)
    counts = checkpoint["loops"]["fit_loop"][name]["total"]
    assert counts == {"ready": 2, "started": 2, "processed": 2, "completed": 2}, moved("lightning", name)
    for change, first in ((fence.begin_validation_again, "validation"), (fence.complete_validation, "training")):
        change(checkpoint)
        torch.save(checkpoint, path)
        order = Order()
        fitted(tmp_path, order, checkpoint=path, max_steps=3)
        assert order.seen[0] == first, moved("lightning", name)


class Order(Callback):
    """Which batches came first."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_train_batch_start(self, *_: Any) -> None:
        self.seen.append("training")

    def on_validation_batch_start(self, *_: Any, **__: Any) -> None:
        self.seen.append("validation")


def test_instantiator(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    trainer = fitted(tmp_path, max_steps=1)
    trainer.save_checkpoint(path)
    checkpoint = torch.load(path, weights_only=True)
    checkpoint["hyper_parameters"]["_instantiator"] = "os.system"
    torch.save(checkpoint, path)
    with pytest.raises((TypeError, ValueError)):  # else nothing needs it any more
        BetaVAE.load_from_checkpoint(path, weights_only=True)
    assert isinstance(fence.load_as(BetaVAE, path, "cpu"), BetaVAE), moved("lightning", "_instantiator")


def test_wandb_init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_SILENT", "true")
    logger = WandbLogger(save_dir=tmp_path, project="fences", mode="online")
    needs("lightning", logger, "_wandb_init")
    fence.log_offline(logger)
    try:
        assert logger.experiment.offline, moved("lightning", "_wandb_init")
    finally:
        logger.experiment.finish()


def test_parse_ckpt_path() -> None:
    needs("lightning", LightningCLI, "_parse_ckpt_path")
    assert "_parse_ckpt_path" in LightningCLI.__init__.__code__.co_names, moved("lightning", "_parse_ckpt_path")
    assert ZooCLI._parse_ckpt_path is not LightningCLI._parse_ckpt_path


def parser() -> ArgumentParser:
    def limited(limit: float = 1.0) -> None: ...

    made = ArgumentParser(exit_on_error=False)
    made.add_function_arguments(limited)
    return made


def test_actions() -> None:
    needs("jsonargparse", parser(), "_actions")
    assert "limit" in [action.dest for action in parser()._actions], moved("jsonargparse", "_actions")


def test_typehint() -> None:
    made = parser()
    (action,) = [action for action in made._actions if action.dest == "limit"]
    set_type(made, "lim", int | float | None)
    for text, number in (("1", 1), ("1.0", 1.0)):
        found = made.parse_args([f"--limit={text}"]).limit
        assert (found, type(found)) == (number, type(number)), moved("jsonargparse", "_typehint")
    needs("jsonargparse", action, "_typehint")


# What makes jsonargparse say each of the texts that errors.py reads, in their order: an option, or a configuration.
WRONG = (
    "--config=none.yaml",
    "--model=no_such_zoo.MyVAE",
    "model: {class_path: BetaVAE, init_args: {betaa: 3}}",
    "model: {class_path: BetaVAE, init_args: {optimizer: {class_path: torch.optim.Adam, init_args: {rate: 1}}}}",
    "modl: {class_path: BetaVAE}",
    "--trainer.max_stps=3",
    "--model=BetVAE",
    "fitt",  # of the commands themselves, in the words of argparse
    "--model=lightning.pytorch.Trainer",
    "model: {class_path: BetaVAE, init_args: [1]}",
    "model: {class_path: [BetaVAE]}",
    "words",
    "--trainer=3",
    "--trainer.max_steps=many",
    "model: {class_path: BetaVAE, init_args: {likelihood: bernouli}}",
    "--trainer.precision=fp99",
    "--seed_everything=0",
    "model: [",
    "model: 3",
    "--seed_everything=x",
    "model: {class_path: BetaVAE, init_args: {optimizer: builtins.print}}",
)


@pytest.mark.parametrize(("pattern", "wrong"), list(zip(errors._EXPLANATIONS, WRONG, strict=True)))
def test_texts_of_errors(pattern: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wrong.yaml").write_text(wrong)
    args = [wrong] if wrong == "fitt" else ["fit", wrong if wrong.startswith("--") else "--config=wrong.yaml"]
    with pytest.raises(ArgumentError) as caught:
        run([*args, "--debug"])
    first = next((known for known in errors._EXPLANATIONS if re.search(known, str(caught.value))), None)
    assert first == pattern, f"jsonargparse {version('jsonargparse')} words this error in another way: mend errors.py"


def test_foreach_norm() -> None:
    needs("torch", torch, "_foreach_norm")
    found = norms([torch.tensor([3.0, 4.0]), torch.full((2, 2), 2.0), torch.tensor([torch.inf])])
    assert found.tolist() == [5.0, 4.0, torch.inf], moved("torch", "_foreach_norm")


def test_dynamo() -> None:
    from torch._dynamo.exc import TorchDynamoException

    def breaks(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x

    with pytest.raises(TorchDynamoException):
        torch.compile(breaks, fullgraph=True)(torch.zeros(1))


def test_inductor() -> None:
    from torch._inductor import list_mode_options

    assert not list_mode_options("default"), moved("torch", "list_mode_options")
    assert list_mode_options("max-autotune"), moved("torch", "list_mode_options")


def private(tree: ast.AST) -> Iterator[str]:
    """Private names that a file takes from objects other than self and from other modules, in whatever way."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in OWN):
            names = [node.attr]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            source = getattr(node, "module", None) or ""
            names = [part for alias in node.names for part in f"{source}.{alias.name}".split(".")]
        elif isinstance(node, ast.Call):
            names = [keyword.arg or "" for keyword in node.keywords]
            if isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr", "hasattr", "delattr"):
                names += [str(arg.value) for arg in node.args if isinstance(arg, ast.Constant)]
        yield from (name for name in names if re.match("_[^_]", name) and name not in PUBLIC)


OWN = ("self", "cls")


def layout(tree: ast.AST) -> set[str]:
    """Keys of Lightning's checkpoints that it documents nowhere."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in LAYOUT}


def test_private_names_stand_behind_their_fences() -> None:
    assert {file for file, tree in FILES.items() if any(private(tree))} == FENCES.keys()
    assert {file for file, tree in FILES.items() if layout(tree)} == {"vaezoo/models/lightning_private.py"}


def test_every_private_name_has_a_test() -> None:
    used = {name for file in FENCES for name in private(FILES[file])} | OVERRIDDEN | {"_loops"}
    tests = {name.removeprefix("test") for name in globals() if name.startswith("test_")}
    assert used <= tests


def library_names(cls: type) -> set[str]:
    """Private attributes that the classes of other packages give a class, by definition or by assignment to self."""
    return set[str]().union(*(names_of(base) for base in cls.__mro__))


@cache
def names_of(base: type) -> set[str]:
    """Those of one class; none where it is of no other package."""
    if base.__module__.partition(".")[0] not in ("lightning", "jsonargparse", "torch", "torchmetrics"):
        return set()
    source = "" if base.__module__ == "torch._C" else inspect.getsource(base)
    assigned = re.findall(r"self\.(_[a-z]\w*)\s*(?::[^=\n]+)?=[^=]", source)
    return {name for name in vars(base) if re.match("_[^_]", name)} | set(assigned)


def test_classes_use_no_private_name_of_what_they_extend() -> None:
    """Through self a private name of the base, used or overridden, looks like one of our own."""
    taken = {}
    for file, tree in FILES.items():
        module = importlib.import_module(file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and hasattr(module, node.name):
                inside = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
                inside |= {n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef)}
                if names := inside & library_names(getattr(module, node.name)):
                    taken[node.name] = names
    assert taken == {"ZooCLI": OVERRIDDEN}


def test_the_fences_see_what_they_should() -> None:
    code = "x._a; self._b; f(_c=1); getattr(x, '_d'); from m import _e; from m._f import g; x.__h__; t._replace(y=1)"
    assert set(private(ast.parse(code))) == {"_a", "_c", "_d", "_e", "_f"}
    assert {"_trainer", "_fabric"} <= library_names(vaezoo.VAE)
