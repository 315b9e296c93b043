import math

import pytest
import torch

from tests.helpers.zoo import a_batch
from vaezoo.nn.latents import Concrete, Gaussian
from vaezoo.regularizers import KL, Capacity, Regularizer
from vaezoo.types import Forward, Posterior


def forward(**posterior: Posterior) -> Forward:
    return Forward(posterior, {}, torch.empty(0))


def gaussian_with_kls(*nats: float) -> Gaussian:
    """Unit variance: the KL of each example is mu²/2."""
    mu = torch.tensor([[math.sqrt(2 * n)] for n in nats])
    return Gaussian(mu, torch.zeros_like(mu))


def value(term: Regularizer, step: int = 0, **posterior: Posterior) -> float:
    return term(forward(**posterior), a_batch(), torch.tensor(step)).loss.item()


def test_kl_is_beta_times_the_batch_mean_of_the_sum() -> None:
    mu = torch.tensor([[1.0, 2.0], [3.0, 0.0]])  # KLs 0.5 + 2 and 4.5 + 0
    assert value(KL("z", 3.0), z=Gaussian(mu, torch.zeros(2, 2))) == pytest.approx(3 * (2.5 + 4.5) / 2)


def test_capacity_takes_the_absolute_value_of_the_batch_mean() -> None:
    """KLs {0, 2C} average to C: no penalty, though each example alone is C away."""
    assert value(Capacity("z", 10.0, 4.0, 0), z=gaussian_with_kls(0.0, 8.0)) == pytest.approx(0, abs=1e-5)
    assert value(Capacity("z", 10.0, 4.0, 0), z=gaussian_with_kls(1.0, 1.0)) == pytest.approx(30, rel=1e-5)


def test_capacity_without_absolute_value_is_negative_below_the_target() -> None:
    term = Capacity("z", 10.0, 4.0, 0, absolute=False)
    assert value(term, z=gaussian_with_kls(1.0, 1.0)) == pytest.approx(-30, rel=1e-5)
    assert value(term, z=gaussian_with_kls(9.0, 9.0)) == pytest.approx(50, rel=1e-5)


def test_capacity_follows_its_ramp() -> None:
    term = Capacity("z", 1.0, 5.0, 100)
    gaps = [value(term, step, z=gaussian_with_kls(0.0)) for step in (0, 10, 100, 1000)]
    assert gaps == pytest.approx([0.0, 0.5, 5.0, 5.0])


def test_capacity_may_rise_later() -> None:
    """At batch 20 + 10 of a ramp of 100 it is a tenth of its 5 nats; before batch 20 it is 0, not less."""
    term = Capacity("z", 1.0, 5.0, 100, delay=20)
    gaps = [value(term, step, z=gaussian_with_kls(0.0)) for step in (0, 10, 20, 30, 120, 1000)]
    assert gaps == pytest.approx([0.0, 0.0, 0.0, 0.5, 5.0, 5.0])


def test_discrete_capacity_is_capped_at_the_sum_of_log_k() -> None:
    one_hot = Concrete((torch.eye(10) * 1e4, torch.eye(10)[:, :3] * 1e4 + torch.eye(10)[:, [3, 4, 5]]), 0.67)
    term = Capacity("c", 30.0, 50.0, 0)(forward(c=one_hot), a_batch(), torch.tensor(0))
    assert term.logs["capacity"].item() == pytest.approx(math.log(10) + math.log(3))


def test_capacity_refuses_a_negative_target_or_delay() -> None:
    with pytest.raises(ValueError, match="max_nats"):
        Capacity(max_nats=-1)
    with pytest.raises(ValueError, match="delay"):
        Capacity(delay=-1)


def test_terms_are_differentiable_on_both_sides_of_the_capacity() -> None:
    for nats, sign in ((1.0, -1.0), (9.0, 1.0)):
        mu = torch.tensor([[math.sqrt(2 * nats)]], requires_grad=True)
        term = Capacity("z", 2.0, 4.0, 0)(forward(z=Gaussian(mu, torch.zeros(1, 1))), a_batch(), torch.tensor(0))
        (gradient,) = torch.autograd.grad(term.loss, mu)
        assert gradient.item() == pytest.approx(sign * 2.0 * math.sqrt(2 * nats))
