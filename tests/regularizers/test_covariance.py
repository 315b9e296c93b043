import math

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers.zoo import a_batch
from vaezoo.nn.latents import Concrete, Gaussian
from vaezoo.regularizers import CovarianceMatching
from vaezoo.types import Forward, Term


def term(regularizer: CovarianceMatching, mean: Tensor, logvar: Tensor) -> Term:
    return regularizer(Forward({"z": Gaussian(mean, logvar)}, {}, torch.empty(0)), a_batch(), torch.tensor(0))


@pytest.mark.parametrize("variant", ["i", "ii"])
def test_the_loss_is_a_loop_over_the_matrix(variant: str) -> None:
    mean, logvar = torch.randn(6, 3), torch.randn(6, 3)
    mu, var = mean.double().numpy(), logvar.double().exp().numpy()
    cov = sum(np.outer(m, m) for m in mu) / 6 - np.outer(mu.mean(0), mu.mean(0))
    if variant == "ii":
        cov = cov + np.diag(var.mean(0))
    expected = 0.0
    for i in range(3):
        for j in range(3):
            expected += 2.0 * cov[i, j] ** 2 if i != j else 7.0 * (cov[i, i] - 1) ** 2
        d = mu[:, i] - mu[:, i].mean()
        expected += 5.0 * float(np.mean(d**3 + 3 * d * var[:, i])) ** 2
    found = term(CovarianceMatching("z", variant, 2.0, 7.0, 5.0), mean, logvar)  # type: ignore[arg-type]
    assert found.loss.item() == pytest.approx(expected, rel=1e-5)


def test_a_hand_worked_matrix_of_two_examples() -> None:
    mean = torch.tensor([[1.0, 0.0], [-1.0, 2.0]])  # deviations (1, −1), (−1, 1): C = [[1, −1], [−1, 1]]
    logvar = torch.tensor([[math.log(2.0), math.log(1.0)]] * 2)
    first = term(CovarianceMatching("z", "i", 1.0, 1.0), mean, logvar).logs
    assert (first["off_diagonal"].item(), first["diagonal"].item()) == pytest.approx((2.0, 0.0))
    second = term(CovarianceMatching("z", "ii", 1.0, 1.0), mean, logvar).logs  # diagonal 1 + 2 and 1 + 1
    assert (second["off_diagonal"].item(), second["diagonal"].item()) == pytest.approx((2.0, 5.0))


def test_variant_ii_is_the_covariance_of_samples() -> None:
    torch.manual_seed(0)
    q = Gaussian(torch.randn(50, 2) @ torch.tensor([[1.0, 0.7], [0.0, 1.0]]), torch.randn(50, 2))
    samples = torch.cat([q.rsample() for _ in range(8000)]).double()
    cov = torch.cov(samples.T, correction=0)
    first = term(CovarianceMatching("z", "i", 1.0, 1.0), q.mean, q.logvar).logs
    logs = term(CovarianceMatching("z", "ii", 1.0, 1.0), q.mean, q.logvar).logs
    assert logs["off_diagonal"].item() == pytest.approx(2 * cov[0, 1].item() ** 2, rel=0.02)
    assert logs["diagonal"].item() == pytest.approx((cov.diagonal() - 1).square().sum().item(), rel=0.02)
    assert torch.equal(first["off_diagonal"], logs["off_diagonal"])


def test_third_moments_are_those_of_samples() -> None:
    torch.manual_seed(0)
    mean = torch.tensor([[0.0], [0.0], [3.0]])
    logvar = torch.tensor([[0.0], [0.5], [1.0]])
    samples = Gaussian(mean.repeat(300_000, 1), logvar.repeat(300_000, 1)).rsample().double()
    third = (samples - samples.mean()).pow(3).mean().item()
    logs = term(CovarianceMatching(lambda_3=1.0), mean, logvar).logs
    assert logs["third_moments"].item() == pytest.approx(third**2, rel=0.03)


@pytest.mark.parametrize("variant", ["i", "ii"])
def test_duplicating_the_batch_changes_nothing(variant: str) -> None:
    mean, logvar = torch.randn(5, 4), torch.randn(5, 4)
    regularizer = CovarianceMatching("z", variant, 2.0, 3.0, 4.0)  # type: ignore[arg-type]
    once, twice = term(regularizer, mean, logvar), term(regularizer, mean.repeat(2, 1), logvar.repeat(2, 1))
    torch.testing.assert_close(once.loss, twice.loss)


def test_the_running_covariance_mixes_in_training_and_rests_in_evaluation() -> None:
    regularizer = CovarianceMatching("z", "i", 1.0, 1.0, momentum=0.25, dim=2)
    mean = torch.tensor([[1.0, 0.0], [-1.0, 2.0]], requires_grad=True)
    loss = term(regularizer, mean, torch.zeros(2, 2)).loss  # ¾ I + ¼ [[1, −1], [−1, 1]]
    assert loss.item() == pytest.approx(2 * 0.25**2)
    assert torch.autograd.grad(loss, mean)[0].abs().sum() > 0
    after = torch.tensor([[1.0, -0.25], [-0.25, 1.0]])
    torch.testing.assert_close(regularizer.running, after)
    regularizer.eval()
    term(regularizer, mean, torch.zeros(2, 2))
    torch.testing.assert_close(regularizer.running, after)


@pytest.mark.parametrize(
    ("bad", "message"),
    [({"variant": "iii"}, "variant"), ({"momentum": 0.0}, "momentum")],
)
def test_nonsense_is_refused(bad: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CovarianceMatching(**bad)  # type: ignore[arg-type]


def test_a_discrete_latent_is_refused() -> None:
    out = Forward({"z": Concrete((torch.zeros(2, 3),), 0.67)}, {}, torch.empty(0))
    with pytest.raises(TypeError, match="needs a Gaussian"):
        CovarianceMatching()(out, a_batch(), torch.tensor(0))
