"""The command line, run as users run it."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import vaezoo
from datamodules import Shapes3DDataModule
from tests.helpers.commands import SHORT, the_run
from tests.helpers.paths import ROOT
from vaezoo.cli.main import COMMANDS, run
from vaezoo.metrics import MIG


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)


def test_the_saved_config_validates_tests_and_predicts(capsys: pytest.CaptureFixture[str]) -> None:
    model = ["--model=BetaVAE", "--model.latent_dim=3", "--data=Shapes3DDataModule", "--data.batch_size=4"]
    assert run(["fit", *model, *SHORT]) == 0
    folder = the_run("betavae")
    again = [f"--config={folder}/config.yaml", f"--ckpt_path={folder}/checkpoints/last.ckpt"]
    assert run(["validate", *again, "--trainer.limit_val_batches=1"]) == 0
    assert "val/loss" in capsys.readouterr().out
    assert run(["test", *again, "--trainer.limit_test_batches=1"]) == 0
    assert run(["predict", *again, "--trainer.limit_predict_batches=1"]) == 0
    (codes,) = Path("runs").glob("*/*/codes.npz")
    assert np.load(codes)["codes"].shape == (4, 3)


def test_fit_continues_from_a_checkpoint() -> None:
    options = ["--model=BetaVAE", "--data=Shapes3DDataModule", "--data.batch_size=4", "--trainer.limit_val_batches=0"]
    assert run(["fit", *options, "--trainer.max_steps=2", "--experiment=first"]) == 0
    last = the_run("first") / "checkpoints" / "last.ckpt"
    assert run(["fit", *options, "--trainer.max_steps=5", "--experiment=second", f"--ckpt_path={last}"]) == 0
    assert vaezoo.load(the_run("second") / "checkpoints" / "last.ckpt").step == 5


def test_regularizers_are_set_one_by_one_from_the_command_line() -> None:
    more = '{"more": {"class_path": "Capacity", "init_args": {"max_nats": 3}}}'
    options = ["--data=Shapes3DDataModule", "--data.batch_size=4", "--model=BetaVAE", f"--model.regularizers={more}"]
    assert run(["fit", *options, "--model.regularizers.more.init_args.gamma=9", *SHORT]) == 0
    term = vaezoo.load(the_run("betavae") / "checkpoints" / "last.ckpt").regularizers["more"]
    assert isinstance(term, vaezoo.Capacity)
    assert (term.gamma, term.max_nats) == (9.0, 3.0)


def test_the_data_source_is_recorded() -> None:
    options = ["--model=BetaVAE", "--data=Shapes3DDataModule", "--data.batch_size=4"]
    assert run(["fit", *options, *SHORT]) == 0
    folder = the_run("betavae")
    assert yaml.safe_load((folder / "config.yaml").read_text())["data"]["init_args"]["source"] == "render"
    assert yaml.safe_load((folder / "hparams.yaml").read_text())["data_source"] == "render"


@pytest.mark.parametrize("precision", ["bf16-mixed", "32-true"])
def test_precisions(precision: str) -> None:
    options = ["--model=AnnealedVAE", "--data=Shapes3DDataModule", "--data.batch_size=4"]
    assert run(["fit", *options, *SHORT, f"--trainer.precision={precision}"]) == 0
    state = torch.load(the_run("annealedvae") / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    assert all(value.isfinite().all() for value in state.values())


def test_two_processes_share_one_run() -> None:
    """An epoch has one batch on each rank, fewer than the interval of validations counts."""
    split = {"val_size": 470_000, "test_size": 9_992}
    options = ["--model=BetaVAE", "--data=Shapes3DDataModule", "--data.batch_size=4", "--data.labels=3", *SHORT]
    options += [f"--data.{name}={size}" for name, size in split.items()]
    ddp = ["--trainer.accelerator=cpu", "--trainer.devices=2", "--trainer.strategy=ddp"]
    scores = ["--trainer.callbacks=EvaluateDisentanglement", "--trainer.callbacks.images=150"]
    scores += ["--trainer.val_check_interval=2"]
    command = [sys.executable, "-m", "vaezoo", "fit", *options, *ddp, *scores]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    folder = the_run("betavae")
    assert vaezoo.load(folder / "checkpoints" / "last.ckpt").step == 2
    assert len(np.load(folder / "labelled_ids.npy")) == 3
    # Either rank encoded half of the pool; the score is that of the whole.
    data = Shapes3DDataModule(source="render", **split)
    data.setup()
    model = vaezoo.load(folder / "checkpoints" / "last.ckpt")
    pool = [(model.codes(batch), y) for batch, y in data.evaluation_batches(150, "val", 0, torch.device("cpu"))]
    expected = MIG()(*(torch.cat(part) for part in zip(*pool, strict=True)))["mig_20"].item()
    rows = csv.DictReader((folder / "metrics.csv").read_text().splitlines())
    (found,) = [float(row["val/mig_20"]) for row in rows if row["val/mig_20"]]
    assert found == pytest.approx(expected, abs=1e-3)


def test_seeds_make_runs_equal() -> None:
    options = ["--model=BetaVAE", "--data=Shapes3DDataModule", "--data.batch_size=4", *SHORT]
    for seed, name in ((1, "a"), (1, "b"), (2, "c")):
        assert run(["fit", *options, f"--seed_everything={seed}", f"--experiment={name}"]) == 0
    a, b, c = (vaezoo.load(the_run(name) / "checkpoints" / "last.ckpt").state_dict() for name in "abc")
    assert all(torch.equal(a[key], b[key]) for key in a)
    assert not all(torch.equal(a[key], c[key]) for key in a)


BAD = {
    "model.init_args.betaa: 3": ("BetaVAE has no argument 'betaa'", "'beta'"),
    "model.class_path: BetVAE": ("no class is called 'BetVAE'", "'BetaVAE'"),
    "model.init_args.beta: much": ("model.beta: expected float, got 'much'", ""),
    "model.init_args.network: DensNetwork": ("no class is called 'DensNetwork'", "'DenseNetwork'"),
    "model.init_args.likelihood: bernouli": ("'bernouli' is none of", "'bernoulli'"),
    "modl.class_path: BetaVAE": ("unknown key 'modl'", "'model'"),
    "trainer.max_stps: 3": ("unknown key 'trainer.max_stps'", "'trainer.max_steps'"),
    "trainer.precision: fp99": ("'fp99' is none of", ""),
    "data.class_path: Shape3DDataModule": ("no class is called 'Shape3DDataModule'", "'Shapes3DDataModule'"),
    "data.init_args.batch_sise: 3": ("Shapes3DDataModule has no argument 'batch_sise'", "'batch_size'"),
    "data.init_args.batch_size: 0": ("batch_size must be at least 1", ""),
}


@pytest.mark.parametrize("wrong", BAD)
def test_a_wrong_config_is_one_line_that_names_it(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = {"model": {"class_path": "BetaVAE"}, "data": {"class_path": "Shapes3DDataModule"}}
    key, value = wrong.split(": ")
    *path, last = key.split(".")
    place: dict[str, object] = config  # type: ignore[assignment]
    for step in path:
        place = place.setdefault(step, {})  # type: ignore[assignment]
    place[last] = yaml.safe_load(value)
    Path("wrong.yaml").write_text(yaml.safe_dump(config))
    assert run(["fit", "--config=wrong.yaml"]) != 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("vaezoo: error:")]
    message, suggestion = BAD[wrong]
    assert message in line
    assert suggestion in line
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["fitt"], "'fitt' is none of"),
        (["evalute"], "did you mean 'evaluate'?"),
        (["fit"], "--data and --model missing"),
        (["fit", "--config=experiment.yaml"], "no file 'experiment.yaml'; did you mean 'experiments.yaml'?"),
        (["fit", "--config=broken.yaml"], "not valid YAML"),
        (["fit", "--trainer.max_stps=3"], "unknown key 'trainer.max_stps'; did you mean 'trainer.max_steps'?"),
        (["fit", "--model=BetaVAE", "--data=Shapes3DDataModule", "--ckpt_path=none.ckpt"], "none.ckpt"),
    ],
)
def test_a_wrong_command_is_one_line(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("experiments.yaml").write_text("{}")
    Path("broken.yaml").write_text("model: [")
    assert run(args) != 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("vaezoo: error:")]
    assert message in line


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ["fit", "--model=BetaVAE", "--data=Shapes3DDataModule", "--data.batch_size=0"]
    with pytest.raises(ValueError, match="batch_size"):
        run([*options, "--debug"])
    monkeypatch.setenv("VAEZOO_DEBUG", "1")
    with pytest.raises(ValueError, match="batch_size"):
        run(options)


def test_print_config_is_a_config(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run(["fit", f"--config={ROOT}/experiments/betavae_3dshapes.yaml", "--print_config"])
    assert stop.value.code == 0
    Path("printed.yaml").write_text(capsys.readouterr().out)
    assert run(["fit", "--config=printed.yaml", "--data.init_args.batch_size=4", *SHORT]) == 0


def test_one_batch_is_not_all_batches(capsys: pytest.CaptureFixture[str]) -> None:
    """1 stays whole whichever of int and float typing's cache puts first, which depends on what is installed."""
    options = ["--model=VAE", "--data=BlobsDataModule", "--trainer.limit_val_batches=1"]
    with pytest.raises(SystemExit):
        run(["fit", *options, "--print_config"])
    assert "limit_val_batches: 1\n" in capsys.readouterr().out


def test_labels_are_a_count_or_a_fraction() -> None:
    options = ["--model=VAE", "--data=BlobsDataModule", "--data.batch_size=4", *SHORT]
    for labels, count in (("100", 100), ("0.01", 824)):
        assert run(["fit", *options, f"--data.labels={labels}", f"--experiment=labels{count}"]) == 0
        assert len(np.load(the_run(f"labels{count}") / "labelled_ids.npy")) == count


def test_help_does_not_load_torch() -> None:
    done = python("import sys; from vaezoo.__main__ import main; main(['--help']); assert 'torch' not in sys.modules")
    assert done.returncode == 0, done.stderr
    assert "vaezoo fit --config" in done.stdout
    assert "vaezoo evaluate --ckpt_path" in done.stdout


def test_what_a_command_imports_is_not_searched_for_garbage() -> None:
    """At the end neither; what comes after the imports is collected as ever."""
    done = python(
        "import gc; from vaezoo.__main__ import main; assert main(['nothing']) == 2\n"
        "assert gc.get_freeze_count() > 100_000 and gc.isenabled()\n"
        "frozen, mine = gc.get_freeze_count(), [[] for _ in range(1000)]\n"
        "assert main(['nothing']) == 2 and gc.get_freeze_count() <= frozen and len(gc.get_objects()) > len(mine)\n"
        "import atexit; atexit._run_exitfuncs()\n"
        "assert len(gc.get_objects()) < len(mine)"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("command", "said"), [("assert main(['nothing']) == 2", False), ("pass", True)])
def test_a_command_ends_without_complaints_of_what_outlives_its_modules(command: str, said: bool) -> None:
    """A file lock of torch's compiler complains on standard error, as `os` is gone when it is dropped."""
    done = python(
        "import json, sys; from vaezoo.__main__ import main\n"
        f"{command}\n"
        "class Lock:\n"
        "    def __del__(self): raise AttributeError('no getpid')\n"
        "json.lock = Lock()"
    )
    assert done.returncode == 0
    assert ("no getpid" in done.stderr) is said


def test_a_new_process() -> None:
    """Importing models loads neither W&B nor datamodules, and training no other command; numbers too small to be fast
    are zero in every thread; the command finds every model by name."""
    done = python(
        "import sys, vaezoo\n"
        "assert not {'torch', 'wandb', 'datamodules', 'matplotlib'} & set(sys.modules)\n"
        "vaezoo.BetaVAE\n"
        "assert not {'wandb', 'datamodules'} & set(sys.modules)\n"
        "import torch; from vaezoo.__main__ import main; assert main(['nothing']) == 2; torch.set_num_threads(2)\n"
        "others = {f'vaezoo.{name}.command' for name in ('evaluation', 'explorer', 'report', 'sharing', 'study')}\n"
        "assert not {'wandb', 'h5py', 'scipy.io', 'pandas', 'sklearn', *others} & set(sys.modules)\n"
        "small = torch.ones(1_000_000, dtype=torch.int32).view(torch.float32)\n"  # the bits of 1.4e-45
        "assert not (small * 1).view(torch.int32).any()\n"
        "sys.exit(main(['fit', '--model.help', 'JointVAE']))"
    )
    assert done.returncode == 0, done.stderr
    assert "--model.temperature" in done.stdout


def test_every_public_name_is_there() -> None:
    assert all(getattr(vaezoo, name) for name in vaezoo.__all__)
    with pytest.raises(AttributeError, match="No vaezoo attribute GAN"):
        vaezoo.GAN  # noqa: B018


@pytest.mark.skipif(sys.version_info < (3, 11), reason="jsonargparse recurses too deep for Python 3.10 there")
@pytest.mark.parametrize("commands", [("predict",), pytest.param(COMMANDS, marks=pytest.mark.slow)])
def test_shell_completion(commands: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vaezoo.cli.main.COMMANDS", commands)
    with pytest.raises(SystemExit) as stop:
        run(["--print_completion=shtab-bash"])
    assert stop.value.code == 0
