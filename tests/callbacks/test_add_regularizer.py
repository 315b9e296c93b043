from pathlib import Path

import pytest
import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn

import vaezoo
from tests.helpers.zoo import MODELS, a_batch, loader, trainer
from vaezoo.callbacks import AddRegularizer
from vaezoo.regularizers import Capacity, Regularizer
from vaezoo.types import Batch, Forward, Term


class Pull(Regularizer):
    """A term with a parameter of its own."""

    def __init__(self, weight: float = 1.0) -> None:
        super().__init__()
        self.weight = weight
        self.target = nn.Parameter(torch.ones(()))

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        return Term(self.weight * (out.posterior["z"].code().mean() - self.target).square(), {})

    def param_group(self) -> dict[str, float]:
        return {"lr": 0.1}


def test_the_term_trains_with_its_own_options_and_loads_without_the_callback(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = MODELS["BetaVAE"]()
    fit = trainer(tmp_path, 2, callbacks=[AddRegularizer("pull", Pull(3.0))], enable_checkpointing=False)
    fit.fit(model, loader(2))
    assert list(model.terms(a_batch())) == ["recon", "kl", "pull"]
    term = model.regularizers["pull"]
    assert isinstance(term, Pull)
    assert abs(term.target.item() - 1) > 0.15  # two Adam steps of 0.1, not of the model's 5e-4
    fit.save_checkpoint(tmp_path / "model.ckpt")
    loaded = vaezoo.load(tmp_path / "model.ckpt").regularizers["pull"]
    assert isinstance(loaded, Pull)
    assert loaded.weight == 3.0
    assert loaded.target == term.target


def test_training_continues_without_the_callback(tmp_path: Path) -> None:
    fit = trainer(tmp_path, 2, callbacks=[AddRegularizer("pull", Pull())], enable_checkpointing=False)
    fit.fit(MODELS["VAE"](), loader(2))
    fit.save_checkpoint(tmp_path / "model.ckpt")
    model = MODELS["VAE"]()
    trainer(tmp_path, 4, enable_checkpointing=False).fit(
        model, loader(2), ckpt_path=tmp_path / "model.ckpt", weights_only=True
    )
    assert "pull" in model.regularizers
    assert model.step == 4


def gradients(callbacks: bool, accumulate: int, tmp_path: Path) -> list[Tensor]:
    """Gradients at the first optimizer step, the term added by the callback or by the constructor."""
    torch.manual_seed(0)
    term = Capacity("z", 5.0, 3.0, 0)
    model = MODELS["BetaVAE"]()
    if not callbacks:
        model.add_regularizer("capacity", term)
    found: list[Tensor] = []
    model.on_before_optimizer_step = lambda _: found.extend(  # type: ignore[method-assign]
        p.grad.clone() for p in model.parameters() if p.grad is not None
    )
    added = [AddRegularizer("capacity", term)] if callbacks else []
    fit = trainer(tmp_path, 1, callbacks=added, accumulate_grad_batches=accumulate, enable_checkpointing=False)
    torch.manual_seed(1)
    fit.fit(model, loader(4))
    return found


def test_the_term_takes_part_in_gradient_accumulation(tmp_path: Path) -> None:
    built_in, added = gradients(False, 4, tmp_path), gradients(True, 4, tmp_path)
    assert built_in
    for a, b in zip(built_in, added, strict=True):
        torch.testing.assert_close(a, b)


def test_a_taken_name_is_an_error_unless_it_is_the_same_term(tmp_path: Path) -> None:
    model = MODELS["BetaVAE"]()
    fit = trainer(tmp_path, 1)
    with pytest.raises(ValueError, match="'kl' already"):
        AddRegularizer("kl", Capacity()).setup(fit, model, "fit")
    AddRegularizer("more", Capacity()).setup(fit, model, "fit")
    AddRegularizer("more", Capacity()).setup(fit, model, "fit")
    with pytest.raises(TypeError, match="needs a vaezoo VAE"):
        AddRegularizer("more", Capacity()).setup(fit, LightningModule(), "fit")
