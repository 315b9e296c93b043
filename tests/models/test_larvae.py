"""LaRVAE: its loss by loops from the paper, and what label replacement must and must not do."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.zoo import NETWORK, SHAPE, a_batch
from vaezoo.models import TCVAE, BetaVAE, LaRVAE
from vaezoo.models.base import VAE
from vaezoo.nn.latents import Gaussian
from vaezoo.regularizers import (
    KL,
    CovarianceMatching,
    DiscriminatedTotalCorrelation,
    LabelReconstruction,
    LabelReplacement,
    Regularizer,
    TotalCorrelation,
)
from vaezoo.types import Batch

K, Z, STREAM, LABELLED = 3, 2, 4, 3
UNSUPERVISED: dict[str, Callable[[], dict[str, Regularizer]]] = {
    "beta": lambda: {"kl": KL(beta=2.0)},
    "tc": lambda: {"kl": KL(), "tc": TotalCorrelation("z", 5.0)},
    "factor": lambda: {"kl": KL(), "tc": DiscriminatedTotalCorrelation(K + Z, width=8)},
    "dip": lambda: {"kl": KL(), "covariance": CovarianceMatching()},
}


def semi_supervised(labelled: int = LABELLED, stream: int = STREAM) -> Batch:
    """Unlabelled images followed by labelled ones."""
    batch = a_batch(stream + labelled, labels=K)
    batch.labelled[stream:] = True
    batch.y[stream:] = torch.rand(labelled, K, generator=torch.Generator().manual_seed(3))
    return batch


def larvae(seed: int = 0, **options: object) -> LaRVAE:
    torch.manual_seed(seed)
    return LaRVAE(SHAPE, K, Z, network=NETWORK, **options)  # type: ignore[arg-type]


def loss_of(model: VAE, batch: Batch) -> Tensor:
    torch.manual_seed(1)
    return model.training_step(batch)


def bernoulli(logits: Tensor, x: Tensor) -> float:
    nats = 0.0
    for logit, pixel in zip(logits.flatten().double().tolist(), x.flatten().double().tolist(), strict=True):
        p = 1 / (1 + math.exp(-logit))
        nats -= pixel * math.log(p) + (1 - pixel) * math.log(1 - p)
    return nats


def kl(mean: Tensor, logvar: Tensor) -> float:
    pairs = zip(mean.double().tolist(), logvar.double().tolist(), strict=True)
    return sum(0.5 * (m * m + math.exp(v) - v - 1) for m, v in pairs)


@pytest.mark.parametrize("observed", [True, False], ids=["all labels", "some labels"])
def test_the_loss_is_that_of_the_paper(observed: bool) -> None:
    """Nie et al. (2020), Eq. 7 to 9 over β-VAE, with the sign of Eq. 9's KL set right."""
    alpha, tau, beta = 7.0, 0.5, 2.0
    model, batch = larvae(alpha=alpha, tau=tau, unsupervised={"kl": KL(beta=beta)}), semi_supervised()
    if not observed:
        batch.y[STREAM, 1] = torch.nan
    torch.manual_seed(1)
    noise = torch.randn(STREAM + LABELLED, K + Z)
    features = model.encoder(batch.x)
    mean, logvar = model.heads["z"].parameters_of(features).detach().chunk(2, 1)
    expected = 0.0
    for b in range(STREAM + LABELLED):
        z = mean[b] + (logvar[b] / 2).exp() * noise[b]
        labels = [k for k in range(K) if b >= STREAM and not math.isnan(batch.y[b, k])]
        for k in labels:
            z[k] = batch.y[b, k]
        nats = bernoulli(model.decoder(z[None]).detach(), batch.x[b])
        if b < STREAM:
            expected += (nats + beta * kl(mean[b], logvar[b])) / STREAM
        else:
            free = [d for d in range(K + Z) if d not in labels]
            expected += alpha * sum((mean[b, k] - batch.y[b, k]).item() ** 2 for k in labels) / LABELLED
            expected += tau * (nats + kl(mean[b, free], logvar[b, free])) / LABELLED
    assert loss_of(model, batch).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("unsupervised", UNSUPERVISED.values(), ids=UNSUPERVISED.keys())
def test_unsupervised_terms_read_the_stream_alone(
    unsupervised: Callable[[], dict[str, Regularizer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Gaussian, "rsample", lambda q: q.mean + 0.5 * (q.logvar / 2).exp())
    terms = unsupervised()
    model = larvae(unsupervised=terms, tau=0.0)
    plain = VAE(SHAPE, {"z": model.latents["z"]}, terms, NETWORK)
    plain.load_state_dict(model.state_dict())
    batch = semi_supervised()
    stream = batch.at(~batch.labelled)
    torch.manual_seed(1)
    found = model.terms(batch)
    torch.manual_seed(1)
    expected = plain.terms(stream)
    for name, term in expected.items():
        torch.testing.assert_close(found[name].loss, term.loss, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("unsupervised", UNSUPERVISED.values(), ids=UNSUPERVISED.keys())
def test_at_tau_0_it_is_the_baseline_bit_for_bit(unsupervised: Callable[[], dict[str, Regularizer]]) -> None:
    """The baseline is L_unsup and the label loss; replacing labels at weight 0 changes nothing either."""

    def trained(model: VAE) -> dict[str, Tensor]:
        optimizer = model.configure_optimizers()
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model, semi_supervised()).backward()
            optimizer.step()
        return {name: value for name, value in model.state_dict().items() if name != "step"}

    torch.manual_seed(0)
    terms = {**unsupervised(), "labels": LabelReconstruction()}
    baseline = VAE(SHAPE, {"z": larvae().latents["z"]}, terms, NETWORK)
    start = baseline.state_dict()
    ours = larvae(tau=0.0, unsupervised=unsupervised())
    replacing = larvae(tau=0.0, unsupervised=unsupervised(), regularizers={"replacement": LabelReplacement("z", 0.0)})
    for model in (ours, replacing):
        model.load_state_dict(start)
    expected = trained(baseline)
    for model in (ours, replacing):
        assert all(torch.equal(value, expected[name]) for name, value in trained(model).items())


def test_replacement_shrinks_a_large_nuisance() -> None:
    model, batch = larvae(), semi_supervised()
    head = model.heads["z"].parameters_of
    with torch.no_grad():
        head.bias[K : K + Z] = 50.0  # the means of the nuisance
    terms = model.terms(batch)
    terms["replacement"].loss.backward()
    assert (head.bias.grad[K : K + Z] > 0).all()  # type: ignore[index]  # a step against the gradient makes it smaller


def test_replacement_gives_the_label_head_no_gradient() -> None:
    model, batch = larvae(), semi_supervised()
    model.terms(batch)["replacement"].loss.backward()
    gradient = model.heads["z"].parameters_of.weight.grad
    assert gradient is not None
    means, logvars = gradient.chunk(2)
    assert (means[:K] == 0).all()
    assert (logvars[:K] == 0).all()
    assert means[K:].abs().sum() > 0


def test_the_label_loss_does_not_grow_with_the_batch() -> None:
    model, batch = larvae(), semi_supervised()
    twice = Batch(*(torch.cat([field, field]) for field in batch))
    loss, doubled = model.terms(batch)["labels"], model.terms(twice)["labels"]
    torch.testing.assert_close(loss.loss, doubled.loss)
    y, mean = batch.y[STREAM:], model.encode(batch.x[STREAM:])["z"].code()[:, :K]
    torch.testing.assert_close(loss.logs["distance"], (mean - y).norm(dim=1).mean())  # ℓ2


def test_labels_are_replaced_in_training_only() -> None:
    model, batch = larvae(), semi_supervised()
    sample = model(batch).sample["z"]
    assert torch.equal(sample[STREAM:, :K], batch.y[STREAM:])
    model.eval()
    assert torch.equal(model(batch).sample["z"], model.encode(batch.x)["z"].mode())
    assert model.terms(batch)["replacement"].loss == 0


def test_unlabelled_batches_train_without_labels_and_whole_ones_are_an_error() -> None:
    model = larvae()
    terms = model.terms(a_batch(4, labels=K))
    assert terms["labels"].loss == terms["replacement"].loss == 0
    with pytest.raises(ValueError, match="labelled_batch_size above 0"):
        model.terms(semi_supervised(stream=0))
    with pytest.raises(ValueError, match="label_dim"):
        LaRVAE(SHAPE, 1, 0, network=NETWORK).terms(semi_supervised())


def test_images_are_generated_from_labels() -> None:
    model, labels = larvae().eval(), torch.rand(2, K)
    images = model.generate(labels)
    torch.testing.assert_close(images, model.decoder(torch.cat([labels, torch.zeros(2, Z)], 1)).sigmoid().detach())
    walk = model.labels_walk(labels, steps=4)
    assert walk.shape == (2, K, 4, K)
    changed = labels.clone()
    changed[:, 1] = 1 / 3
    torch.testing.assert_close(walk[:, 1, 1], changed)
    assert torch.equal(model.infer_labels(images), model.represent(images)[:, :K])
    with pytest.raises(ValueError, match="shape"):
        model.generate(torch.rand(2, K + 1))


def test_any_model_takes_label_terms() -> None:
    terms = {"labels": LabelReconstruction(alpha=100.0), "replacement": LabelReplacement()}
    torch.manual_seed(0)
    model = TCVAE(SHAPE, K + Z, beta=6.0, regularizers=terms, network=NETWORK)
    assert torch.equal(loss_of(model, semi_supervised()), loss_of(larvae(), semi_supervised()))
    assert set(BetaVAE(SHAPE, K, regularizers=terms, network=NETWORK).terms(semi_supervised())) >= set(terms)
