import math

import pytest
import torch
from torch import Tensor

from tests.helpers.zoo import a_batch
from vaezoo.functional import mutual_information
from vaezoo.nn.latents import Concrete, Gaussian
from vaezoo.regularizers import ViewAgreement
from vaezoo.types import Forward, Posterior


def by_a_loop(p: Tensor, q: Tensor) -> float:
    """Ji et al. (2019), Eq. 2 and 3, summed class by class."""
    n, k = p.shape
    joint = [
        [sum(float(p[i, a] * q[i, b] + p[i, b] * q[i, a]) for i in range(n)) / (2 * n) for b in range(k)]
        for a in range(k)
    ]
    marginal = [sum(row) for row in joint]
    return sum(joint[a][b] * math.log(joint[a][b] / (marginal[a] * marginal[b])) for a in range(k) for b in range(k))


def test_mutual_information_is_that_of_the_paper() -> None:
    generator = torch.Generator().manual_seed(0)
    p, q = 3 * torch.randn(2, 7, 4, generator=generator, dtype=torch.float64)
    p, q = p.softmax(1), (p + q).softmax(1)
    assert mutual_information(p, q).item() == pytest.approx(by_a_loop(p, q), rel=1e-5)
    assert mutual_information(p.repeat(3, 1), q.repeat(3, 1)).item() == pytest.approx(by_a_loop(p, q), rel=1e-5)


def test_mutual_information_of_known_cases() -> None:
    one_hot = torch.eye(5).repeat(4, 1)
    assert mutual_information(one_hot, one_hot).item() == pytest.approx(math.log(5))
    # Two of four classes, each in half of the images and always the same in both views: one bit.
    halves = torch.eye(4)[[0, 1]].repeat(3, 1)
    assert mutual_information(halves, halves).item() == pytest.approx(math.log(2))
    constant = torch.eye(5)[[2]].repeat(6, 1)
    assert mutual_information(constant, constant).item() == pytest.approx(0, abs=1e-6)
    # Views whose classes have nothing to do with each other: all pairs once.
    first, second = torch.eye(3).repeat_interleave(3, 0), torch.eye(3).repeat(3, 1)
    assert mutual_information(first, second).item() == pytest.approx(0, abs=1e-6)


def test_the_term_rewards_classes_that_views_share() -> None:
    x = a_batch(6).x
    own, other = torch.randn(2, 6, 3, requires_grad=True).unbind()
    second, third = torch.randn(6, 2), torch.randn(6, 7)
    seen: list[Tensor] = []

    def encode(images: Tensor, labels: Tensor) -> dict[str, Posterior]:
        seen.append(images)
        return {"c": Concrete((other, second), 0.67), "aux": Concrete((third,), 0.67)}

    out = Forward(
        {"c": Concrete((own, second), 0.67), "aux": Concrete((third,), 0.67)}, {}, torch.empty(0), encode=encode
    )
    term = ViewAgreement(["c", "aux"], 2.0)
    result = term(out, a_batch(6), torch.tensor(0))
    nats = by_a_loop(own.detach().softmax(1), other.detach().softmax(1)) + by_a_loop(
        second.softmax(1), second.softmax(1)
    )
    aux = by_a_loop(third.softmax(1), third.softmax(1))
    assert result.loss.item() == pytest.approx(-2 * (nats + aux), rel=1e-4)
    assert result.logs["c"].item() == pytest.approx(nats, rel=1e-4)
    assert result.logs["aux"].item() == pytest.approx(aux, rel=1e-4)
    assert all(gradient.abs().sum() > 0 for gradient in torch.autograd.grad(result.loss, [own, other]))
    assert seen[0].shape == x.shape
    assert not torch.equal(seen[0], x)
    evaluated = term.eval()(out, a_batch(6), torch.tensor(0))
    assert evaluated.loss.item() == 0
    assert len(seen) == 1, "nothing is drawn in evaluation"


@pytest.fixture
def _largest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every random amount at its upper bound."""
    monkeypatch.setattr(torch, "rand", lambda *size, **_: torch.ones(*size))


NONE = {"degrees": 0.0, "slant": 0.0, "scale": 0.0, "shift": 0.0}


def test_no_amounts_leave_images_as_they_are() -> None:
    x = torch.rand(3, 2, 8, 8)
    assert torch.allclose(ViewAgreement(**NONE).moved(x), x, atol=1e-5)


@pytest.mark.usefixtures("_largest")
def test_each_amount_does_what_its_name_says() -> None:
    x = torch.rand(3, 2, 8, 8)
    turned = ViewAgreement(**{**NONE, "degrees": 90.0}).moved(x)
    assert torch.allclose(turned, x.rot90(1, (2, 3)), atol=1e-5)
    shifted = ViewAgreement(**{**NONE, "shift": 0.25}).moved(x)
    assert torch.allclose(shifted[:, :, :6, :6], x[:, :, 2:, 2:], atol=1e-5)
    smaller = ViewAgreement(**{**NONE, "scale": 0.5}).moved(
        torch.ones(1, 1, 8, 8).index_fill(3, torch.tensor([0, 7]), 0)
    )
    assert smaller[0, 0, 4].round().tolist() == [0, 0, 1, 1, 1, 1, 0, 0]
    upright = torch.zeros(1, 1, 9, 9).index_fill(3, torch.tensor([4]), 1)
    slanted = ViewAgreement(**{**NONE, "slant": 1.0}).moved(upright)
    assert torch.allclose(slanted, torch.eye(9).flip(1)[None, None], atol=1e-5)


def test_images_are_moved_each_in_its_own_way() -> None:
    x = torch.rand(1, 1, 16, 16).repeat(4, 1, 1, 1)
    moved = ViewAgreement().moved(x)
    assert all((moved[i] - moved[j]).abs().max() > 0.01 for i in range(4) for j in range(i))


def test_wrong_uses_are_told() -> None:
    with pytest.raises(ValueError, match="scale must be"):
        ViewAgreement(scale=1.0)
    gaussian = Gaussian(torch.zeros(2, 3), torch.zeros(2, 3))
    with pytest.raises(TypeError, match="'c' is Gaussian; this term needs a discrete one"):
        ViewAgreement()(
            Forward({"c": gaussian}, {}, torch.empty(0), encode=lambda x, y: {"c": gaussian}),
            a_batch(2),
            torch.tensor(0),
        )
    discrete = Concrete((torch.zeros(8, 3),), 0.67)
    with pytest.raises(TypeError, match="no encoder"):
        ViewAgreement()(Forward({"c": discrete}, {}, torch.empty(0)), a_batch(), torch.tensor(0))
