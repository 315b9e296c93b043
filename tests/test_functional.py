import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Bernoulli, Categorical, Laplace, MultivariateNormal, Normal, kl_divergence

from vaezoo import functional as f

DTYPES = [torch.float32, torch.float64]


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    return {"rtol": 1e-4, "atol": 1e-5} if dtype is torch.float32 else {"rtol": 1e-9, "atol": 1e-10}


def normal(*shape: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def gradients(loss: Tensor, *inputs: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss.sum(), inputs))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gaussian_kl_is_that_of_torch_distributions(dtype: torch.dtype) -> None:
    mu, logvar = normal(5, 3, dtype=dtype), normal(5, 3, dtype=dtype, seed=1)
    expected = kl_divergence(Normal(mu, (logvar / 2).exp()), Normal(torch.zeros_like(mu), torch.ones_like(mu)))
    torch.testing.assert_close(f.gaussian_kl(mu, logvar), expected, **tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gaussian_kl_between_is_that_of_torch_distributions(dtype: torch.dtype) -> None:
    mu_q, logvar_q, mu_p, logvar_p = (normal(5, 3, dtype=dtype, seed=s) for s in range(4))
    expected = kl_divergence(Normal(mu_q, (logvar_q / 2).exp()), Normal(mu_p, (logvar_p / 2).exp()))
    torch.testing.assert_close(f.gaussian_kl_between(mu_q, logvar_q, mu_p, logvar_p), expected, **tolerance(dtype))


def test_gaussian_kl_between_against_monte_carlo() -> None:
    mu_q, logvar_q, mu_p, logvar_p = (torch.tensor([[v]], dtype=torch.float64) for v in (0.5, -1.0, -0.3, 0.4))
    q, p = Normal(mu_q, (logvar_q / 2).exp()), Normal(mu_p, (logvar_p / 2).exp())
    torch.manual_seed(0)
    z = q.sample((400_000,))
    ratio = q.log_prob(z) - p.log_prob(z)
    error = 4 * ratio.std() / math.sqrt(len(z))
    assert abs(ratio.mean() - f.gaussian_kl_between(mu_q, logvar_q, mu_p, logvar_p)) < error


@pytest.mark.parametrize("dtype", DTYPES)
def test_categorical_kl_and_entropy_are_those_of_torch_distributions(dtype: torch.dtype) -> None:
    probs, prior = normal(6, 4, dtype=dtype).softmax(-1), normal(4, dtype=dtype, seed=1).softmax(-1)
    uniform = Categorical(torch.full_like(probs, 0.25))
    torch.testing.assert_close(f.entropy(probs), Categorical(probs).entropy(), **tolerance(dtype))
    torch.testing.assert_close(f.categorical_kl(probs), kl_divergence(Categorical(probs), uniform), **tolerance(dtype))
    expected = kl_divergence(Categorical(probs), Categorical(prior.expand_as(probs)))
    torch.testing.assert_close(f.categorical_kl(probs, prior), expected, **tolerance(dtype))


def test_categorical_kl_of_one_hot_is_log_n() -> None:
    assert f.categorical_kl(torch.eye(10)).allclose(torch.full((10,), math.log(10)))
    assert f.categorical_kl(torch.full((2, 10), 0.1)).abs().max() < 1e-6


def test_gumbel_softmax_picks_classes_as_often_as_their_probabilities() -> None:
    torch.manual_seed(0)
    probs = torch.tensor([0.1, 0.2, 0.7])
    samples = f.gumbel_softmax(probs.log().expand(100_000, 3), 0.67)
    torch.testing.assert_close(samples.sum(1), torch.ones(100_000))
    frequencies = samples.argmax(1).bincount(minlength=3) / 100_000
    assert (frequencies - probs).abs().max() < 0.007  # over 4 standard errors


def test_gumbel_softmax_sharpens_as_temperature_falls_and_hard_is_one_hot_with_gradient() -> None:
    torch.manual_seed(0)
    logits = torch.zeros(20_000, 4, requires_grad=True)
    soft, sharp = (f.gumbel_softmax(logits, t).max(1).values.mean() for t in (5.0, 0.1))
    assert sharp > 0.9 > 0.5 > soft
    hard = f.gumbel_softmax(logits, 0.67, hard=True)
    torch.testing.assert_close(hard.max(1).values, torch.ones(20_000))
    torch.testing.assert_close(hard.sum(1), torch.ones(20_000))
    (gradient,) = gradients(hard[:, 0], logits)
    assert gradient.abs().sum() > 0


def total_correlation(*args: Any, **options: Any) -> Tensor:
    """KL(q(z) || Π_l q(z_l)), a scalar."""
    joint, marginals = f.aggregate_log_densities(*args, **options)
    return (joint - marginals).mean()


@pytest.mark.parametrize("estimator", ["mws", "mss", "batch"])
def test_total_correlation_against_a_loop(estimator: f.Estimator) -> None:
    z, mu, logvar = (normal(6, 3, dtype=torch.float64, seed=s) for s in range(3))
    batch, dims, size = 6, 3, 50
    others = batch - 1
    total = 0.0
    for j in range(batch):
        joint, marginals = 0.0, [0.0] * dims
        for i in range(batch):
            if estimator == "mws":
                weight = 1 / (size * batch)
            elif estimator == "batch":
                weight = 1 / batch
            elif i == j:
                weight = 1 / size
            elif i == (j + 1) % batch:
                weight = (size - others) / (size * others)
            else:
                weight = 1 / others
            densities = Normal(mu[i], (logvar[i] / 2).exp()).log_prob(z[j]).exp().tolist()
            joint += weight * math.prod(densities)
            marginals = [m + weight * d for m, d in zip(marginals, densities, strict=True)]
        total += (math.log(joint) - sum(math.log(m) for m in marginals)) / batch
    assert total_correlation(z, mu, logvar, size, estimator).item() == pytest.approx(total, rel=1e-9)


def test_stratified_weights_of_a_sample_sum_to_one() -> None:
    weights = f._log_weights(torch.zeros(7, 2, dtype=torch.float64), 100, "mss").exp()
    torch.testing.assert_close(weights.sum(1), torch.ones(7, dtype=torch.float64))


@pytest.mark.parametrize("estimator", ["mss", "batch"])
@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_total_correlation_of_a_gaussian(estimator: f.Estimator, rho: float) -> None:
    """mu ~ N(0, S), narrow posteriors: TC of q(z) is ½ log(det diag C / det C) for C = S + σ²I."""
    torch.manual_seed(0)
    batch, variance = 4000, 0.25
    cov = torch.tensor([[1.0, rho], [rho, 1.0]])
    mu = MultivariateNormal(torch.zeros(2), cov).sample((batch,))
    logvar = torch.full_like(mu, math.log(variance))
    z = mu + math.sqrt(variance) * torch.randn_like(mu)
    total = cov + variance * torch.eye(2)
    expected = 0.5 * math.log(total.diagonal().prod() / torch.linalg.det(total))
    # 4000 samples put the standard error of the mean near 0.01.
    assert total_correlation(z, mu, logvar, 10 * batch, estimator).item() == pytest.approx(expected, abs=0.04)


def test_total_correlation_without_dataset_size_takes_the_batch() -> None:
    z, mu, logvar = (normal(6, 3, dtype=torch.float64, seed=s) for s in range(3))
    assert total_correlation(z, mu, logvar) == total_correlation(z, mu, logvar, dataset_size=6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_covariance_is_biased(dtype: torch.dtype) -> None:
    x = normal(7, 3, dtype=dtype) + 5
    torch.testing.assert_close(f.covariance(x), torch.cov(x.T, correction=0), **tolerance(dtype))
    by_hand = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=dtype)
    torch.testing.assert_close(f.covariance(torch.tensor([[0.0, 1.0], [2.0, 5.0]], dtype=dtype)), by_hand)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bhattacharyya_against_quadrature(dtype: torch.dtype) -> None:
    mu1, logvar1, mu2, logvar2 = (torch.tensor([v], dtype=dtype) for v in (0.3, -0.5, -0.9, 0.7))
    grid = torch.linspace(-20, 20, 40_001, dtype=torch.float64)
    p, q = Normal(mu1.double(), (logvar1.double() / 2).exp()), Normal(mu2.double(), (logvar2.double() / 2).exp())
    area = torch.trapezoid((0.5 * (p.log_prob(grid) + q.log_prob(grid))).exp(), grid)
    assert f.bhattacharyya(mu1, logvar1, mu2, logvar2).item() == pytest.approx(area.item(), rel=1e-5)


def test_bhattacharyya_of_equal_far_and_many() -> None:
    mu, logvar = torch.randn(4, 3), torch.randn(4, 3)
    torch.testing.assert_close(f.bhattacharyya(mu, logvar, mu, logvar), torch.ones(4))
    assert f.bhattacharyya(mu, logvar, mu + 100, logvar).max() < 1e-20
    other = torch.randn(4, 3)
    one_by_one = [f.bhattacharyya(mu[:, [d]], logvar[:, [d]], other[:, [d]], logvar[:, [d]]) for d in range(3)]
    torch.testing.assert_close(f.bhattacharyya(mu, logvar, other, logvar), torch.stack(one_by_one).prod(0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian", "laplace"])
def test_reconstruction_is_the_negative_log_likelihood(dtype: torch.dtype, likelihood: f.Likelihood) -> None:
    out = normal(3, 2, 4, 4, dtype=dtype)
    x = (normal(3, 2, 4, 4, dtype=dtype, seed=1) > 0).to(dtype)
    mean = 1 / (1 + (-out).exp())
    distributions = {"bernoulli": Bernoulli(mean), "gaussian": Normal(mean, 1.0), "laplace": Laplace(mean, 1.0)}
    expected = -distributions[likelihood].log_prob(x).sum((1, 2, 3))
    torch.testing.assert_close(f.reconstruction(out, x, likelihood), expected, **tolerance(dtype))


def test_l1_is_the_plain_sum_of_absolute_errors() -> None:
    """x̂ = ½: ½ for each of 8 black or white pixels, and nothing else."""
    x = torch.tensor([0.0, 1.0]).repeat(4).reshape(1, 2, 2, 2)
    assert f.reconstruction(torch.zeros(1, 2, 2, 2), x, "l1").item() == pytest.approx(4.0)


def test_the_variance_of_a_gaussian_likelihood() -> None:
    """x̂ = ½ and x = 1 at σ² = ¼: ½ · ¼ / ¼ + ½ log(2π/4) for each of 8 pixels."""
    found = f.reconstruction(torch.zeros(1, 2, 2, 2), torch.ones(1, 2, 2, 2), "gaussian", 0.25)
    assert found.item() == pytest.approx(8 * (0.5 + 0.5 * math.log(math.pi / 2)), rel=1e-6)


def test_reconstruction_names_a_wrong_likelihood() -> None:
    with pytest.raises(ValueError, match="'poisson'"):
        f.reconstruction(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2), "poisson")  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("level", [-20.0, 20.0])
def test_gaussian_terms_have_finite_gradients_at_extreme_variances(dtype: torch.dtype, level: float) -> None:
    mu = torch.full((1, 4), 3.0, dtype=dtype, requires_grad=True)  # B = 1 at that
    logvar = torch.full((1, 4), level, dtype=dtype, requires_grad=True)
    other = torch.zeros_like(mu)
    z = mu + (logvar / 2).exp() * 0.5
    for value in (
        f.gaussian_kl(mu, logvar),
        f.gaussian_kl_between(mu, logvar, other, other),
        f.gaussian_kl_between(other, other, mu, logvar),
        f.bhattacharyya(mu, logvar, other, other),
        f.bhattacharyya(mu, logvar, other, -logvar),
        total_correlation(z, mu, logvar, 100, "mws"),
        total_correlation(z, mu, logvar, 100, "mss"),
        total_correlation(z, mu, logvar, estimator="batch"),
        f.covariance(z),
    ):
        assert value.isfinite().all()
        found = torch.autograd.grad(value.sum(), (mu, logvar), retain_graph=True, allow_unused=True)
        assert all(gradient is None or gradient.isfinite().all() for gradient in found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_categorical_terms_have_finite_gradients_at_one_hot(dtype: torch.dtype) -> None:
    probs = torch.eye(3, dtype=dtype)[:1].clone().requires_grad_()
    for value in (f.entropy(probs), f.categorical_kl(probs), f.categorical_kl(probs, torch.eye(3, dtype=dtype)[1])):
        assert value.isfinite().all()
        assert gradients(value, probs)[0].isfinite().all()
    logits = torch.tensor([[1000.0, 0.0, -1000.0]], dtype=dtype, requires_grad=True)
    assert gradients(f.gumbel_softmax(logits, 0.67)[:, 0], logits)[0].isfinite().all()


def test_reconstruction_is_finite_for_extreme_logits() -> None:
    logits = torch.tensor([[[[1e4, -1e4]]]], requires_grad=True)
    loss = f.reconstruction(logits, torch.tensor([[[[0.0, 1.0]]]]))
    assert loss.item() == pytest.approx(2e4)
    assert gradients(loss, logits)[0].isfinite().all()


def test_label_cross_entropy_is_a_loop_over_known_labels() -> None:
    logits = (normal(4, 3, dtype=torch.float64), normal(4, 2, dtype=torch.float64, seed=1))
    labels = torch.tensor([[2.0, 1.0], [0.0, torch.nan], [1.0, 0.0], [torch.nan, torch.nan]])
    expected = [0.0] * 4
    for b, row in enumerate(labels.tolist()):
        for scores, label in zip(logits, row, strict=True):
            if not math.isnan(label):
                expected[b] -= math.log(scores[b].exp()[int(label)] / scores[b].exp().sum())
    assert f.label_cross_entropy(logits, labels).tolist() == pytest.approx(expected)


def test_label_accuracy_is_the_share_of_known_labels() -> None:
    labels = torch.tensor([[2.0, 1.0], [0.0, torch.nan], [1.0, 0.0]])
    assert f.label_accuracy(torch.tensor([[2, 1], [1, 0], [1, 1]]), labels).item() == pytest.approx(3 / 5)
    assert f.label_accuracy(torch.tensor([[1]]), torch.tensor([[torch.nan]])).item() == 0
