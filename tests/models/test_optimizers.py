"""The optimizer as an argument: from Python and YAML, through checkpoints, and exactly resumed."""

from functools import partial
from pathlib import Path

import pytest
import torch
import yaml

import vaezoo
from tests.helpers.harness import attempt
from tests.helpers.zoo import NETWORK, SHAPE, a_batch
from vaezoo.models import BetaVAE, FactorVAE, PartedVAE
from vaezoo.runs.checkpoint_io import read_checkpoint

ADAGRAD = partial(torch.optim.Adagrad, lr=0.03)
PLAIN = {"class_path": "torch.optim.Adagrad", "init_args": {"lr": 0.03}}


def test_a_first_step_of_adagrad_by_hand() -> None:
    """Its sum of squares is g² after one step: every weight moves by lr · g / (|g| + 1e-10)."""
    torch.manual_seed(0)
    model = BetaVAE(SHAPE, 4, network=NETWORK, optimizer=ADAGRAD)
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = model.configure_optimizers()
    model.training_step(a_batch()).backward()
    optimizer.step()
    for old, new in zip(before, model.parameters(), strict=True):
        assert new.grad is not None
        torch.testing.assert_close(new.detach(), old - 0.03 * new.grad / (new.grad.abs() + 1e-10))


def test_terms_keep_the_options_of_their_parameters() -> None:
    model = FactorVAE(SHAPE, 4, discriminator_width=8, network=NETWORK, optimizer=partial(torch.optim.AdamW, lr=0.2))
    optimizer = model.configure_optimizers()
    assert isinstance(optimizer, torch.optim.AdamW)
    assert [(group["lr"], group["betas"]) for group in optimizer.param_groups] == [
        (0.2, (0.9, 0.999)),
        (1e-4, (0.5, 0.9)),
    ]


def test_both_of_partedvae_are_of_the_kind_asked_for() -> None:
    optimizers, _ = PartedVAE(SHAPE, 4, 2, [3], network=NETWORK, optimizer=ADAGRAD).configure_optimizers()
    assert [type(optimizer) for optimizer in optimizers] == [torch.optim.Adagrad] * 2
    assert [optimizer.param_groups[0]["lr"] for optimizer in optimizers] == [0.03] * 2
    default, _ = PartedVAE(SHAPE, 4, 2, [3], network=NETWORK).configure_optimizers()
    assert [type(optimizer) for optimizer in default] == [torch.optim.Adam] * 2


@pytest.mark.parametrize("optimizer", [ADAGRAD, PLAIN, torch.optim.Adagrad], ids=["partial", "plain", "class"])
def test_a_checkpoint_holds_it_as_plain_data(optimizer: object, tmp_path: Path) -> None:
    model = BetaVAE(SHAPE, 4, network=NETWORK, optimizer=optimizer)  # type: ignore[arg-type]
    vaezoo.save(model, tmp_path / "model.ckpt")
    saved = read_checkpoint(tmp_path / "model.ckpt")["hyper_parameters"]["optimizer"]
    assert saved == (PLAIN if optimizer is not torch.optim.Adagrad else PLAIN | {"init_args": {}})
    loaded = vaezoo.load(tmp_path / "model.ckpt")
    assert loaded.spec == model.spec
    found = loaded.configure_optimizers()
    assert isinstance(found, torch.optim.Adagrad)
    assert found.param_groups[0]["lr"] == saved["init_args"].get("lr", 0.01)


@pytest.mark.parametrize(
    "path", ["os.system", "torch.optim.lr_scheduler.StepLR", "torch.save", "Path", "torch.optim.lr"]
)
def test_a_checkpoint_names_optimizers_of_torch_alone(path: str) -> None:
    with pytest.raises(ValueError, match=r"is none of torch\.optim"):
        BetaVAE(SHAPE, 4, network=NETWORK, optimizer={"class_path": path})  # type: ignore[arg-type]


@pytest.mark.parametrize("optimizer", [lambda params: torch.optim.SGD(params), partial(print, 1), partial(Path)])
def test_what_no_checkpoint_can_hold_is_an_error(optimizer: object) -> None:
    with pytest.raises(TypeError, match=r"functools\.partial"):
        BetaVAE(SHAPE, 4, network=NETWORK, optimizer=optimizer)  # type: ignore[arg-type]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    network = {"class_path": "DenseNetwork", "init_args": {"encoder_widths": [4], "decoder_widths": [4]}}
    model = {"class_path": "BetaVAE", "init_args": {"latent_dim": 2, "network": network, "optimizer": PLAIN}}
    data = {"samples": 1, "val_size": 30, "test_size": 30, "batch_size": 4}
    content = {"model": model, "data": {"class_path": "BlobsDataModule", "init_args": data}}
    Path("own.yaml").write_text(yaml.safe_dump(content))
    return Path("own.yaml")


def fit(config: Path, steps: int, *more: str) -> None:
    options = ["--trainer.accelerator=cpu", "--trainer.limit_val_batches=0", f"--trainer.max_steps={steps}"]
    assert attempt(["fit", f"--config={config}", *options, *more]) == (0, "")


def test_yaml_names_one_and_a_resumed_run_repeats_the_unbroken_one(config: Path) -> None:
    fit(config, 4, "--experiment=whole")
    fit(config, 2, "--experiment=parts")
    fit(config, 4, "--experiment=parts", "--ckpt_path=last")
    ends = [sorted(Path("runs", name).glob("*/checkpoints/last.ckpt"))[-1] for name in ("whole", "parts")]
    whole, parts = (read_checkpoint(path) for path in ends)
    assert whole["hyper_parameters"]["optimizer"]["class_path"] == PLAIN["class_path"]
    assert whole["optimizer_states"][0]["param_groups"][0]["lr"] == 0.03
    assert all(set(state) == {"step", "sum"} for state in whole["optimizer_states"][0]["state"].values())
    assert whole["state_dict"].keys() == parts["state_dict"].keys()
    assert all(torch.equal(value, parts["state_dict"][name]) for name, value in whole["state_dict"].items())
    assert isinstance(vaezoo.load(ends[1]).configure_optimizers(), torch.optim.Adagrad)
    code, line = attempt(
        [
            "fit",
            f"--config={config}",
            "--experiment=parts",
            "--ckpt_path=last",
            "--trainer.max_steps=6",
            "--model.init_args.optimizer.init_args.lr=0.5",
        ]
    )
    assert code
    assert "model.optimizer" in line


def test_a_wrong_name_or_option_is_one_line(config: Path) -> None:
    for option in ("optimizer=Adagrid", "optimizer.init_args.rate=1", "optimizer=builtins.print", "optimizer=3"):
        code, line = attempt(["fit", f"--config={config}", f"--model.init_args.{option}"])
        assert code
        assert "optimizer" in line
