"""Log-variances that explode stay bounded and find their way back; others are left alone."""

import copy
import math

import pytest
import torch

from tests.helpers.zoo import MODELS, Make, a_batch, models
from vaezoo.functional import LOGVAR_RANGE, bhattacharyya, bounded, gaussian_kl, gaussian_kl_between, reconstruction
from vaezoo.models.base import VAE
from vaezoo.nn import latents, mixture
from vaezoo.regularizers import Overlap

FAR = 1e4
far = pytest.mark.parametrize("value", [FAR, -FAR])


def gaussian_layers(model: VAE) -> list[torch.nn.Linear]:
    """The last layers of all Gaussian groups: means first, then log-variances."""
    modules = (head.parameters_of for head in model.heads.values() if hasattr(head, "parameters_of"))
    return [layer for module in modules for layer in module.modules() if isinstance(layer, torch.nn.Linear)]


def push(model: VAE, value: float) -> VAE:
    for layer in gaussian_layers(model):
        layer.bias.data.chunk(2)[1].fill_(value)
    return model


def test_log_variances_within_bounds_are_the_same_to_the_bit() -> None:
    x = torch.linspace(*LOGVAR_RANGE, 100_001, requires_grad=True)
    assert torch.equal(bounded(x), x)
    (found,), (expected,) = (torch.autograd.grad(gaussian_kl(x * 0, f(x)).sum(), x) for f in (bounded, lambda x: x))
    assert torch.equal(found, expected)


def test_log_variances_beyond_take_the_bound_and_its_gradient() -> None:
    low, high = LOGVAR_RANGE
    x = torch.tensor([-math.inf, -3e38, low - 1, high + 1, 3e38, math.inf], requires_grad=True)
    at = torch.tensor([low] * 3 + [high] * 3, requires_grad=True)
    assert torch.equal(bounded(x), at)
    (found,), (expected,) = (
        torch.autograd.grad(gaussian_kl(y * 0, v).sum(), y) for y, v in ((x, bounded(x)), (at, at))
    )
    assert torch.equal(found[1:-1], expected[1:-1])
    assert bounded(torch.tensor(math.nan)).isnan()  # an error stays one


@models
def test_bounds_do_not_change_training(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = make()
    twin, found = copy.deepcopy(model), []
    for one in (model, twin):
        optimizer = torch.optim.Adam(one.parameters(), lr=1e-2)
        torch.manual_seed(1)
        for seed in range(3):
            optimizer.zero_grad()
            one.training_step(a_batch(seed=seed)).backward()
            optimizer.step()
        found.append([p.detach() for p in one.parameters()])
        for module in (latents, mixture):
            monkeypatch.setattr(module, "bounded", lambda logvar: logvar)
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))


@far
@models
def test_every_model_survives_and_turns_back(make: Make, value: float) -> None:
    torch.manual_seed(0)
    model = push(make(), value)
    terms = model.terms(a_batch())
    assert all(v.isfinite() for term in terms.values() for v in (term.loss, *term.logs.values()))
    model.training_step(a_batch()).backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert torch.stack(torch._foreach_norm(gradients)).isfinite().all()  # as the guard and Adam need them
    for layer in gaussian_layers(model):
        assert layer.bias.grad is not None
        assert (layer.bias.grad.chunk(2)[1].sign() == math.copysign(1, value)).all()


@far
@pytest.mark.parametrize("name", ["BetaVAE", "DIPVAE II", "TCVAE", "PartedVAE"])
def test_training_comes_back_from_far_away(name: str, value: float) -> None:
    torch.manual_seed(0)
    model, batch = push(MODELS[name](), value), a_batch()
    for turn in range(100):  # by the gradient's sign, as Adam's steps have the size of lr whatever the gradient's is
        model.zero_grad()
        loss = model.training_step(batch)
        assert loss.isfinite()
        loss.backward()
        for layer in gaussian_layers(model):
            assert layer.bias.grad is not None
            layer.bias.data.chunk(2)[1].sub_(2e3 * 0.9**turn * layer.bias.grad.chunk(2)[1].sign())
    found = torch.cat([q.logvar.flatten() for q in model.encode(batch.x).values() if isinstance(q, latents.Gaussian)])
    assert found.abs().max() < 9


@far
def test_half_precision_may_overflow_before_the_bound(value: float) -> None:
    head = latents.GaussianLatent(2).head(3).half()
    head.parameters_of.weight.data.fill_(math.copysign(6e4, value))
    q = head(torch.full((4, 3), 10.0, dtype=torch.float16))
    assert not head.parameters_of(torch.full((4, 3), 10.0, dtype=torch.float16)).isfinite().any()
    assert q.logvar.dtype == torch.float32
    assert (q.logvar == LOGVAR_RANGE[value > 0]).all()


@far
def test_the_mixture_stays_within_its_own_bounds(value: float) -> None:
    model = MODELS["PartedVAE"]()
    head = model.mixture  # type: ignore[attr-defined]
    with torch.no_grad():
        head.component_spread[0].fill_(value)
        head.component_mean[0][0].fill_(value)
    out = model(a_batch())
    (p,) = out.posterior["u"].components
    assert -3 <= p.logvar.min() <= p.logvar.max() <= 1
    term = Overlap()(out, a_batch(), model.step).loss + out.posterior["u"].kl().sum()
    term.backward()
    assert term.isfinite()
    assert all(q.grad.isfinite().all() for q in (head.component_mean[0], head.component_spread[0]))


def test_distances_between_gaussians_are_finite_at_the_bounds() -> None:
    ends = torch.tensor(LOGVAR_RANGE)
    logvars = torch.cartesian_prod(ends, ends).T.clone().requires_grad_()
    means = torch.tensor([[-1e3], [1e3]], requires_grad=True)
    for distance in (gaussian_kl_between, bhattacharyya):
        value = distance(means[0], logvars[0], means[1], logvars[1])
        gradients = torch.autograd.grad(value.sum(), (means, logvars))
        assert all(x.isfinite().all() for x in (value, *gradients))


@far
@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian", "laplace"])
def test_the_decoder_has_no_exponent_that_overflows(likelihood: str, value: float) -> None:
    logits = torch.full((2, 1, 4, 4), value, requires_grad=True)
    loss = reconstruction(logits, torch.rand(2, 1, 4, 4), likelihood).sum()  # type: ignore[arg-type]
    loss.backward()
    assert loss.isfinite()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
