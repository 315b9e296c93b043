import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.helpers.zoo import MODELS, a_batch
from vaezoo.functional import Estimator
from vaezoo.nn.latents import Gaussian
from vaezoo.regularizers import DiscriminatedTotalCorrelation, TotalCorrelation
from vaezoo.regularizers.discriminator import permute_dims
from vaezoo.types import Forward


def forward(n: int = 5, dim: int = 3) -> tuple[Forward, Gaussian]:
    torch.manual_seed(0)
    q = Gaussian(torch.randn(n, dim), torch.randn(n, dim))
    return Forward({"z": q}, {"z": q.rsample()}, torch.empty(0)), q


def density(z: float, mean: float, logvar: float) -> float:
    return math.exp(-0.5 * (z - mean) ** 2 / math.exp(logvar)) / math.sqrt(2 * math.pi * math.exp(logvar))


def test_minibatch_weighted_decomposition_is_a_loop() -> None:
    out, q = forward()
    z, mean, logvar = (t.double().numpy() for t in (out.sample["z"], q.mean, q.logvar))
    n, dim, size = 5, 3, 40
    mi = tc = dwkl = 0.0
    for j in range(n):
        pairs = np.array([[density(z[j, d], mean[i, d], logvar[i, d]) for d in range(dim)] for i in range(n)])
        log_joint = math.log(pairs.prod(1).sum() / (n * size))
        log_marginals = sum(math.log(pairs[:, d].sum() / (n * size)) for d in range(dim))
        log_own = sum(math.log(density(z[j, d], mean[j, d], logvar[j, d])) for d in range(dim))
        log_prior = sum(math.log(density(z[j, d], 0.0, 0.0)) for d in range(dim))
        mi, tc, dwkl = mi + log_own - log_joint, tc + log_joint - log_marginals, dwkl + log_marginals - log_prior
    term = TotalCorrelation("z", 4.0, size)(out, a_batch(), torch.tensor(0))
    assert term.loss.item() == pytest.approx(4 * tc / n, rel=1e-5)
    found = [term.logs[key].item() for key in ("mi", "tc", "dwkl")]
    assert found == pytest.approx([mi / n, tc / n, dwkl / n], rel=1e-5)


@pytest.mark.parametrize("estimator", ["mws", "mss", "batch"])
def test_the_three_parts_sum_to_the_sampled_kl(estimator: Estimator) -> None:
    out, q = forward()
    logs = TotalCorrelation("z", 1.0, 40, estimator)(out, a_batch(), torch.tensor(0)).logs
    z = out.sample["z"]
    sampled = torch.distributions.Normal(q.mean, (q.logvar / 2).exp()).log_prob(z)
    sampled = (sampled - torch.distributions.Normal(0.0, 1.0).log_prob(z)).sum(1).mean()
    torch.testing.assert_close(logs["mi"] + logs["tc"] + logs["dwkl"], sampled)


def test_an_unknown_estimator_is_refused() -> None:
    with pytest.raises(ValueError, match="'nws'"):
        TotalCorrelation(estimator="nws")  # type: ignore[arg-type]


def test_permute_dims_keeps_marginals_and_breaks_pairs() -> None:
    torch.manual_seed(0)
    z = torch.arange(1000.0)[:, None].expand(1000, 3).contiguous()
    permuted = permute_dims(z)
    assert torch.equal(permuted.sort(0).values, z)
    correlation = torch.corrcoef(permuted.T)
    assert correlation[0, 1].abs() < 0.12
    assert correlation[1, 2].abs() < 0.12


def test_the_discriminator_is_the_paper_s() -> None:
    term = DiscriminatedTotalCorrelation(dim=10)
    linear = [m for m in term.discriminator if isinstance(m, nn.Linear)]
    assert [m.out_features for m in linear] == [1000] * 6 + [2]
    assert sum(isinstance(m, nn.LeakyReLU) for m in term.discriminator) == 6
    assert term.param_group() == {"lr": 1e-4, "betas": (0.5, 0.9)}


def test_the_loss_is_gamma_tc_plus_cross_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    out, _ = forward(6)
    term = DiscriminatedTotalCorrelation(gamma=7.0, width=8, depth=2, dim=3)
    monkeypatch.setattr("vaezoo.regularizers.discriminator.permute_dims", lambda z: z.flip(0))
    z = out.sample["z"]
    logits = term.discriminator(z)
    expected = 0.0
    for row in logits.double():
        expected += 7.0 * (row[0] - row[1]).item() / 6
    for row in logits[:3].double():
        expected -= 0.5 * F.log_softmax(row, 0)[0].item() / 3
    for row in term.discriminator(z[3:].flip(0)).double():
        expected -= 0.5 * F.log_softmax(row, 0)[1].item() / 3
    assert term(out, a_batch(), torch.tensor(0)).loss.item() == pytest.approx(expected, rel=1e-5)


def test_neither_player_feels_the_other_s_gradient() -> None:
    model = MODELS["FactorVAE"]()
    term = model.regularizers["tc"]
    assert isinstance(term, DiscriminatedTotalCorrelation)
    own = {id(p) for p in term.parameters()}
    logs = model.terms(a_batch())["tc"].logs
    logs["discriminator"].backward(retain_graph=True)
    assert all(p.grad is None for p in model.parameters() if id(p) not in own)
    assert all(p.grad is not None for p in term.parameters())
    model.zero_grad()
    logs["tc"].backward()
    assert all(p.grad is None for p in term.parameters())
    assert all(p.grad is not None for p in model.encoder.parameters())


@pytest.mark.parametrize("images", [1, 2, 7])
def test_one_pass_gives_the_gradients_of_two(images: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle passes twice: codes through frozen weights for the VAE, frozen codes for the discriminator."""
    monkeypatch.setattr("vaezoo.regularizers.discriminator.permute_dims", lambda z: z.flip(0))
    torch.manual_seed(0)
    term = DiscriminatedTotalCorrelation(gamma=7.0, width=8, depth=3, dim=3).double()
    z = torch.randn(images, 3, dtype=torch.float64, requires_grad=True)
    weights = list(term.parameters())
    found = torch.autograd.grad(3 * term(Forward({}, {"z": z}, z), a_batch(), torch.tensor(0)).loss, [z, *weights])
    frozen = copy.deepcopy(term.discriminator).requires_grad_(False)
    tc = frozen(z).log_softmax(1).mul(torch.tensor([1, -1])).sum(1).mean()
    joint, other = z.detach().tensor_split(2) if images > 1 else (z.detach(), z.detach())
    chances = [term.discriminator(rows).softmax(1) for rows in (joint, other.flip(0))]
    loss = -0.5 * (chances[0][:, 0].log().mean() + chances[1][:, 1].log().mean())
    expected = [*torch.autograd.grad(3 * 7 * tc, z), *torch.autograd.grad(3 * loss, weights)]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-14)


def test_the_discriminator_s_optimizer_has_the_paper_s_settings() -> None:
    model = MODELS["FactorVAE"]()
    vae, discriminator = model.configure_optimizers().param_groups
    assert (vae["lr"], vae["betas"]) == (5e-4, (0.9, 0.999))
    assert (discriminator["lr"], discriminator["betas"]) == (1e-4, (0.5, 0.9))
    assert len(vae["params"]) + len(discriminator["params"]) == len(list(model.parameters()))


def test_the_discriminator_learns_a_known_total_correlation() -> None:
    """Fitted on correlated Gaussian samples, the density ratio gives ½ log 1/(1 − ρ²)."""
    torch.manual_seed(0)
    rho = 0.9
    term = DiscriminatedTotalCorrelation(gamma=1.0, width=64, depth=2, dim=2)
    optimizer = torch.optim.Adam(term.parameters(), lr=3e-3)
    mix = torch.linalg.cholesky(torch.tensor([[1.0, rho], [rho, 1.0]])).T
    estimates = []
    for _ in range(500):
        z = torch.randn(512, 2) @ mix
        logs = term(Forward({}, {"z": z}, torch.empty(0)), a_batch(), torch.tensor(0)).logs
        optimizer.zero_grad()
        logs["discriminator"].backward()
        optimizer.step()
        estimates.append(logs["tc"].item())
    assert np.mean(estimates[-100:]) == pytest.approx(-0.5 * math.log(1 - rho**2), abs=0.15)
