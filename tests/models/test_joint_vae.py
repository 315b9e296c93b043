import math

import pytest
import torch

from tests.helpers.zoo import NETWORK, SHAPE, a_batch
from vaezoo.models import JointVAE
from vaezoo.nn.latents import Concrete, Gaussian
from vaezoo.regularizers import Capacity, ViewAgreement


def model(**options: object) -> JointVAE:
    torch.manual_seed(0)
    return JointVAE(SHAPE, 4, [3, 2], **{"network": NETWORK, "steps": 10, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("scaling", ["released", "paper"])
def test_the_loss_is_a_loop_from_the_paper(scaling: str) -> None:
    joint = model(scaling=scaling, gamma_z=30.0, gamma_c=20.0, max_nats_z=5.0, max_nats_c=5.0)
    joint.step += 4
    batch = a_batch(3)
    torch.manual_seed(1)
    out = joint(batch)
    torch.manual_seed(1)
    found = joint.training_step(batch).item()
    recon = kl_z = kl_c = 0.0
    z, c = out.posterior["z"], out.posterior["c"]
    assert isinstance(z, Gaussian)
    assert isinstance(c, Concrete)
    for b in range(3):
        for logit, pixel in zip(out.reconstruction[b].flatten().double(), batch.x[b].flatten(), strict=True):
            p = torch.sigmoid(logit).item()
            recon -= (pixel.item() * math.log(p) + (1 - pixel.item()) * math.log(1 - p)) / 3
        for mu, logvar in zip(z.mean[b].tolist(), z.logvar[b].tolist(), strict=True):
            kl_z += 0.5 * (mu**2 + math.exp(logvar) - logvar - 1) / 3
        for probs in c.probs:
            kl_c += (math.log(probs.shape[1]) + sum(a * math.log(a + 1e-12) for a in probs[b].tolist())) / 3
    capacity_z, capacity_c = 5.0 * 4 / 10, min(5.0 * 4 / 10, math.log(3) + math.log(2))
    pixels = SHAPE[1] * SHAPE[2]
    if scaling == "released":  # element mean × H·W, everything over H·W
        recon = recon / (SHAPE[0] * pixels) * pixels
    expected = recon + 30 * abs(capacity_z - kl_z) + 20 * abs(capacity_c - kl_c)
    assert found == pytest.approx(expected / (pixels if scaling == "released" else 1), rel=1e-5)


def test_the_discrete_capacity_never_exceeds_the_sum_of_log_n() -> None:
    joint = model()
    joint.step += 10_000
    capacity = joint.terms(a_batch())["capacity_c"].logs["capacity"].item()
    assert capacity == pytest.approx(math.log(3) + math.log(2))
    assert joint.terms(a_batch())["capacity_z"].logs["capacity"].item() == 5.0


def test_the_reconstruction_is_equal_for_one_and_three_equal_channels() -> None:
    grey, rgb = model().eval(), JointVAE((3, 16, 16), 4, [3, 2], network=NETWORK).eval()
    batch = a_batch()
    out = grey(batch)
    coloured = batch._replace(x=batch.x.repeat(1, 3, 1, 1))
    wide = out._replace(reconstruction=out.reconstruction.repeat(1, 3, 1, 1))
    torch.testing.assert_close(rgb.reconstruction_term(wide, coloured).loss, grey.reconstruction_term(out, batch).loss)


def test_the_discrete_kl_does_not_change_with_the_noise() -> None:
    joint = model()
    values = set()
    for seed in range(3):
        torch.manual_seed(seed)
        values.add(joint.terms(a_batch())["capacity_c"].logs["nats"].item())
    assert len(values) == 1


def test_inference() -> None:
    joint, x = model().eval(), a_batch(6).x
    codes = joint.represent(x)
    assert codes.shape == (6, 4 + 3 + 2)
    torch.testing.assert_close(codes[:, 4:7].sum(1), torch.ones(6))
    classes = joint.classify(x)
    assert torch.equal(classes[:, 0], codes[:, 4:7].argmax(1))
    assert torch.equal(classes[:, 1], codes[:, 7:].argmax(1))
    nats = joint.unit_nats(x)
    assert (nats["z"].shape, nats["c"].shape) == ((4,), (2,))


def test_samples_of_a_class_are_decoded_from_that_class() -> None:
    joint = model().eval()
    seen: list[torch.Tensor] = []
    joint.decoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    assert joint.sample_class(50, k=1, variable=1).shape == (50, *SHAPE)
    assert seen[0][:, 7:].tolist() == [[0.0, 1.0]] * 50
    assert seen[0][:, 4:7].sum(1).tolist() == [1.0] * 50
    assert len(seen[0][:, 4:7].argmax(1).unique()) == 3  # the other variable stays random
    with pytest.raises(ValueError, match="within the discrete sizes"):
        joint.sample_class(1, k=2, variable=1)


def test_either_kind_of_latent_may_be_missing() -> None:
    continuous = JointVAE(SHAPE, 4, [], network=NETWORK)
    assert list(continuous.terms(a_batch())) == ["recon", "capacity_z"]
    with pytest.raises(ValueError, match="no discrete latents"):
        continuous.classify(a_batch().x)
    assert list(JointVAE(SHAPE, 0, [10], network=NETWORK).terms(a_batch())) == ["recon", "capacity_c"]


def test_a_wrong_scaling_is_refused() -> None:
    with pytest.raises(ValueError, match="scaling"):
        model(scaling="mean")


def test_gammas_are_those_of_the_released_code_after_the_division_by_pixels() -> None:
    term = model(gamma_z=30.0).regularizers["capacity_z"]
    assert isinstance(term, Capacity)
    assert term.gamma == pytest.approx(30 / 256)


def test_auxiliary_classes_are_read_by_terms_and_by_nothing_else() -> None:
    joint = model(auxiliary=[7], regularizers={"views": ViewAgreement(["c", "aux"])})
    assert joint.represent(a_batch(6).x).shape == (6, 4 + 3 + 2), "no part of the code"
    assert joint.walkable() == ["z", "c"]
    assert list(joint.terms(a_batch())) == ["recon", "capacity_z", "capacity_c", "views"]
    sample = joint.eval().draw(5)
    other = sample | {"aux": sample["aux"].roll(1, 1)}
    assert torch.equal(joint.decode(sample), joint.decode(other))
    joint.train().training_step(a_batch()).backward()
    gradient = joint.heads["aux"].logits_of.weight.grad  # type: ignore[union-attr]
    assert isinstance(gradient, torch.Tensor)
    assert gradient.abs().sum() > 0
