import math

import pytest
import torch
from torch.distributions import Categorical, Normal, kl_divergence

from vaezoo.nn.latents import Concrete, ConcreteLatent, Gaussian, GaussianLatent


def test_gaussian_samples_have_the_posterior_s_moments() -> None:
    torch.manual_seed(0)
    q = Gaussian(
        torch.tensor([[1.0, -2.0]]).expand(200_000, 2), torch.tensor([[0.0, math.log(4.0)]]).expand(200_000, 2)
    )
    z = q.rsample()
    torch.testing.assert_close(z.mean(0), torch.tensor([1.0, -2.0]), atol=0.02, rtol=0)
    torch.testing.assert_close(z.std(0), torch.tensor([1.0, 2.0]), atol=0.02, rtol=0)
    assert q.mode() is q.mean
    assert q.max_nats == math.inf


def test_gaussian_kl_is_per_dimension() -> None:
    q = Gaussian(torch.randn(5, 3), torch.randn(5, 3))
    torch.testing.assert_close(q.kl(), kl_divergence(Normal(q.mean, (q.logvar / 2).exp()), Normal(0.0, 1.0)))


def test_concrete_is_relaxed_in_training_and_one_hot_in_evaluation() -> None:
    q = Concrete((torch.tensor([[0.0, 3.0, 1.0]]), torch.tensor([[2.0, 0.0]])), 0.67)
    assert q.mode().tolist() == [[0, 1, 0, 1, 0]]
    assert q.rsample().shape == (1, 5)
    torch.testing.assert_close(q.code(), torch.cat([q.logits[0].softmax(-1), q.logits[1].softmax(-1)], 1))
    assert q.max_nats == pytest.approx(math.log(3) + math.log(2))


def test_concrete_kl_does_not_change_with_the_noise() -> None:
    q = Concrete((torch.randn(4, 3), torch.randn(4, 5)), 0.67)
    torch.manual_seed(0)
    q.rsample()
    first = q.kl()
    q.rsample()
    assert torch.equal(first, q.kl())
    for i, k in enumerate((3, 5)):
        expected = kl_divergence(Categorical(logits=q.logits[i]), Categorical(torch.full((4, k), 1 / k)))
        torch.testing.assert_close(first[:, i], expected)


def test_walks_change_one_unit_and_nothing_else() -> None:
    code = torch.randn(2, 3)
    walked = GaussianLatent(3).walk(code, 1, torch.tensor([-2.0, 0.0, 2.0]))
    assert walked[:, :, 1].tolist() == [[-2.0, 0.0, 2.0]] * 2
    assert torch.equal(walked[:, :, [0, 2]], code[:, None, [0, 2]].expand(2, 3, 2))
    one_hot = torch.tensor([[1.0, 0.0, 0.0, 1.0, 0.0]])
    assert ConcreteLatent([3, 2]).walk(one_hot, 1, torch.empty(0)).tolist() == [[[1, 0, 0, 1, 0], [1, 0, 0, 0, 1]]]


def test_priors() -> None:
    torch.manual_seed(0)
    like = torch.zeros(1)
    z = GaussianLatent(2).prior(50_000, like)
    assert z.mean(0).abs().max() < 0.03
    assert (z.std(0) - 1).abs().max() < 0.03
    c = ConcreteLatent([4, 2]).prior(50_000, like)
    torch.testing.assert_close(c.mean(0), torch.tensor([0.25] * 4 + [0.5] * 2), atol=0.01, rtol=0)


def test_priors_of_classes_may_be_other_than_uniform() -> None:
    torch.manual_seed(0)
    group = ConcreteLatent([3, 2], priors=[[0.2, 0.3, 0.5], [0.9, 0.1]])
    c = group.prior(50_000, torch.zeros(1))
    torch.testing.assert_close(c.mean(0), torch.tensor([0.2, 0.3, 0.5, 0.9, 0.1]), atol=0.01, rtol=0)
    q = group.head(4)(torch.randn(6, 4))
    for i, prior in enumerate(group.shares):
        expected = kl_divergence(Categorical(logits=q.logits[i]), Categorical(torch.tensor(prior)))
        torch.testing.assert_close(q.kl()[:, i], expected)
    assert torch.equal(q.classes(), torch.stack([logits.argmax(1) for logits in q.logits], 1))


@pytest.mark.parametrize("bad", [{"sizes": []}, {"sizes": [1]}, {"sizes": [2], "temperature": 0.0}])
def test_concrete_latent_refuses_nonsense(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"sizes|temperature"):
        ConcreteLatent(**bad)  # type: ignore[arg-type]


def test_gaussian_latent_refuses_no_dimensions() -> None:
    with pytest.raises(ValueError, match="dim"):
        GaussianLatent(0)
