"""What every model of the zoo must do."""

import copy
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback
from torch import Tensor

import vaezoo
from tests.helpers.zoo import MODELS, SHAPE, Make, a_batch, in_order, loader, models, trainer
from vaezoo.models import BetaVAE


@models
@pytest.mark.parametrize("size", [1, 8])
def test_terms_are_finite_and_sum_to_the_loss(make: Make, size: int) -> None:
    model = make()
    twin = copy.deepcopy(model)  # running estimates move with every call
    torch.manual_seed(0)
    terms = model.terms(a_batch(size))
    torch.manual_seed(0)
    loss = twin.training_step(a_batch(size))
    assert list(terms) == ["recon", *model.regularizers]
    assert all(value.isfinite() and value.shape == () for t in terms.values() for value in (t.loss, *t.logs.values()))
    assert loss.item() == pytest.approx(sum(term.loss.item() for term in terms.values()), rel=1e-6)


@models
def test_every_parameter_gets_a_gradient(make: Make) -> None:
    model = make()
    model.training_step(a_batch(observed=5)).backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


@models
def test_evaluation_is_deterministic_and_training_is_not(make: Make) -> None:
    model, batch = make(), a_batch()
    sampled = [model(batch).reconstruction for _ in range(2)]
    assert not torch.equal(*sampled)
    model.eval()
    decoded = [model(batch).reconstruction for _ in range(2)]
    assert torch.equal(*decoded)


@models
def test_inference(make: Make) -> None:
    model, x = make().eval(), a_batch(3).x
    width = sum(group.size for group in model.latents.values() if group.decoded)
    assert model.represent(x).shape == (3, width)
    assert torch.equal(model.represent(x), model.represent(x))
    for images in (model.reconstruct(x), model.sample(3)):
        assert images.shape == (3, *SHAPE)
        assert 0 <= images.min() <= images.max() <= 1
    for name, group in model.latents.items():
        walks = model.traverse(x, name, steps=5)
        assert len(walks) == group.units
        assert all(walk.shape[0] == 3 and walk.shape[2:] == SHAPE for walk in walks)


def test_traversal_moves_the_unit_it_names() -> None:
    model, x = MODELS["BetaVAE"]().eval(), a_batch(2).x
    z = model.encode(x)["z"].mode().detach()
    z[:, 2] = 1.5
    (walk,) = model.traverse(x, "z", units=[2], steps=2, span=(0.0, 1.5))
    torch.testing.assert_close(walk[:, 1], model.decode({"z": z}).sigmoid())


def test_traversal_of_an_unknown_group_is_an_error() -> None:
    with pytest.raises(ValueError, match="'w' is not one of z"):
        MODELS["VAE"]().traverse(a_batch(1).x, "w")


@models
def test_checkpoint_round_trip(make: Make, tmp_path: Path) -> None:
    model = make()
    fit = trainer(tmp_path, 2, enable_checkpointing=False)
    fit.fit(model, loader(3))
    fit.save_checkpoint(tmp_path / "model.ckpt")
    assert torch.load(tmp_path / "model.ckpt", weights_only=True)["state_dict"]  # holds no pickled object
    for loaded in (vaezoo.load(tmp_path / "model.ckpt"), type(model).load_from_checkpoint(tmp_path / "model.ckpt")):
        assert type(loaded) is type(model)
        assert loaded.step == 2
        assert loaded.spec == model.spec
        x = a_batch().x
        assert torch.equal(loaded.eval().represent(x), model.eval().represent(x))


@models
def test_training_improves_the_reconstruction(make: Make, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, batch = make(), a_batch(32)
    batch.x[:] = torch.rand(1, *SHAPE).round()  # noise cannot be learnt, one picture can
    model.lr = 1e-2
    before = model.eval().terms(batch)["recon"].loss
    trainer(tmp_path, 60, enable_checkpointing=False).fit(model.train(), in_order([batch] * 60))
    assert model.eval().terms(batch)["recon"].loss < 0.8 * before


@models
def test_loss_maths_is_float32_under_autocast(make: Make) -> None:
    model = make()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        terms = model.terms(a_batch())
    assert {term.loss.dtype for term in terms.values()} == {torch.float32}


def test_steps_count_batches_not_optimizer_steps(tmp_path: Path) -> None:
    model = MODELS["AnnealedVAE"]()
    fit = trainer(tmp_path, 2, accumulate_grad_batches=3, enable_checkpointing=False)
    fit.fit(model, loader(6))
    assert fit.global_step == 2
    assert model.step == 6


def test_the_loss_is_that_of_the_paper() -> None:
    """β-VAE (Higgins et al., 2017, Eq. 4) by loops over examples, dimensions and pixels."""
    torch.manual_seed(0)
    model = BetaVAE(SHAPE, 4, beta=2.5, network=MODELS["VAE"]().spec["init_args"]["network"])
    batch = a_batch(3)
    torch.manual_seed(1)
    out = model(batch)
    torch.manual_seed(1)
    loss = model.training_step(batch).item()
    expected = 0.0
    q = out.posterior["z"]
    for b in range(3):
        for logit, pixel in zip(out.reconstruction[b].flatten(), batch.x[b].flatten(), strict=True):
            p = torch.sigmoid(logit.double())
            expected -= (pixel * p.log() + (1 - pixel) * (1 - p).log()).item() / 3
        for mu, logvar in zip(q.mean[b].double(), q.logvar[b].double(), strict=True):  # type: ignore[attr-defined]
            expected += 2.5 * 0.5 * (mu**2 + logvar.exp() - logvar - 1).item() / 3
    assert loss == pytest.approx(expected, rel=1e-5)


def test_a_regularizer_given_by_name_replaces_the_model_s_own() -> None:
    model = BetaVAE(SHAPE, 4, regularizers={"kl": vaezoo.KL("z", 9.0)})
    assert list(model.regularizers) == ["kl"]
    assert model.regularizers["kl"].beta == 9.0


@pytest.mark.parametrize("shape", [(64, 64), (1, 0, 64)])
def test_a_wrong_image_shape_is_an_error(shape: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="image_shape"):
        BetaVAE(shape)


def test_loading_a_missing_or_foreign_checkpoint_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        vaezoo.load(tmp_path / "none.ckpt")
    torch.save({"state_dict": {}}, tmp_path / "foreign.ckpt")
    with pytest.raises(ValueError, match="not written by a vaezoo model"):
        vaezoo.load(tmp_path / "foreign.ckpt")


@models
def test_accumulated_gradients_are_the_mean_over_batches(make: Make, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = make()
    if not model.automatic_optimization:
        pytest.skip("Lightning accumulates no gradients under manual optimization")
    twin, batches = copy.deepcopy(model), [a_batch(8, seed) for seed in range(2)]
    found: list[Tensor] = []

    class Keep(Callback):
        def on_before_optimizer_step(self, *_: object) -> None:
            found.extend(p.grad.clone() for p in model.parameters() if p.grad is not None)

    fit = trainer(tmp_path, 1, enable_checkpointing=False, callbacks=[Keep()], accumulate_grad_batches=2)
    torch.manual_seed(1)
    fit.fit(model, in_order(batches))
    torch.manual_seed(1)
    for batch in batches:
        (twin.training_step(batch) / 2).backward()
    expected = [p.grad for p in twin.parameters() if p.grad is not None]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
