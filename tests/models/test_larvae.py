"""LaRVAE: its loss by loops from the paper, and what label replacement must and must not do."""

import math
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.helpers.zoo import NETWORK, SHAPE, a_batch
from vaezoo.models import TCVAE, BetaVAE, LaRVAE
from vaezoo.models.base import VAE
from vaezoo.nn.latents import Gaussian, GaussianLatent
from vaezoo.regularizers import (
    KL,
    Capacity,
    CovarianceMatching,
    DiscriminatedTotalCorrelation,
    LabelReconstruction,
    LabelReplacement,
    Regularizer,
    TotalCorrelation,
)
from vaezoo.types import Batch, Forward, Term

K, Z, STREAM, LABELLED = 3, 2, 4, 3
UNSUPERVISED: dict[str, Callable[[], dict[str, Regularizer]]] = {
    "beta": lambda: {"kl": KL(beta=2.0)},
    "tc": lambda: {"kl": KL(), "tc": TotalCorrelation(weight=5.0)},
    "factor": lambda: {"kl": KL(), "tc": DiscriminatedTotalCorrelation(width=8)},
    "dip": lambda: {"kl": KL(), "covariance": CovarianceMatching(lambda_3=2.0)},
    "running dip": lambda: {"kl": KL(), "covariance": CovarianceMatching(variant="ii", momentum=0.5)},
    "capacity": lambda: {"capacity": Capacity(max_nats=3.0, steps=1)},
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
    noise = torch.cat([torch.randn(STREAM + LABELLED, dim) for dim in (K, Z)], 1)
    features = model.encoder(batch.x)
    heads = [model.heads[name].parameters_of(features).detach().chunk(2, 1) for name in "yz"]
    mean, logvar = (torch.cat(parts, 1) for parts in zip(*heads, strict=True))
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
    model = larvae(unsupervised=unsupervised(), tau=0.0)
    plain = VAE(SHAPE, model.latents, unsupervised(), NETWORK)
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
    baseline = VAE(SHAPE, larvae().latents, terms, NETWORK, lr=larvae().lr)
    start = baseline.state_dict()
    ours = larvae(tau=0.0, unsupervised=unsupervised())
    replacing = larvae(tau=0.0, unsupervised=unsupervised(), regularizers={"replacement": LabelReplacement("y", 0.0)})
    for model in (ours, replacing):
        model.load_state_dict(start)
    expected = trained(baseline)
    for model in (ours, replacing):
        assert all(torch.equal(value, expected[name]) for name, value in trained(model).items())


def test_replacement_shrinks_a_large_nuisance() -> None:
    model, batch = larvae(), semi_supervised()
    head = model.heads["z"].parameters_of
    with torch.no_grad():
        head.bias[:Z] = 50.0  # the means of the nuisance
    terms = model.terms(batch)
    terms["replacement"].loss.backward()
    assert (head.bias.grad[:Z] > 0).all()  # type: ignore[index]  # a step against the gradient makes it smaller


def test_the_nuisance_of_replacement_may_cost_more() -> None:
    def replacement(**options: float) -> Term:
        model = larvae(regularizers={"replacement": LabelReplacement("y", **options)})
        torch.manual_seed(1)
        return model.terms(semi_supervised())["replacement"]

    once, six = replacement(tau=0.5), replacement(tau=0.5, beta=6.0)
    assert six.loss.item() == pytest.approx(once.loss.item() + 0.5 * 5 * once.logs["nats"].item(), rel=1e-6)


def test_replacement_gives_the_label_head_no_gradient() -> None:
    model, batch = larvae(), semi_supervised()
    model.terms(batch)["replacement"].loss.backward()
    labels, nuisance = (model.heads[name].parameters_of.weight.grad for name in "yz")
    assert labels is not None
    assert nuisance is not None
    assert (labels == 0).all()
    assert (nuisance.abs().sum(1) > 0).all()


def test_the_label_loss_does_not_grow_with_the_batch() -> None:
    model, batch = larvae(), semi_supervised()
    twice = Batch(*(torch.cat([field, field]) for field in batch))
    loss, doubled = model.terms(batch)["labels"], model.terms(twice)["labels"]
    torch.testing.assert_close(loss.loss, doubled.loss)
    y, mean = batch.y[STREAM:], model.encode(batch.x[STREAM:])["y"].code()
    torch.testing.assert_close(loss.logs["distance"], (mean - y).norm(dim=1).mean())  # ℓ2


def test_labels_are_replaced_in_training_only() -> None:
    model, batch = larvae(), semi_supervised()
    assert torch.equal(model(batch).sample["y"][STREAM:], batch.y[STREAM:])
    model.eval()
    assert torch.equal(model(batch).sample["y"], model.encode(batch.x)["y"].mode())
    assert model.terms(batch)["replacement"].loss == 0


def test_batches_without_labelled_images_train_the_other_terms() -> None:
    model = larvae()
    terms = model.terms(a_batch(4, labels=K))
    assert terms["labels"].loss == terms["replacement"].loss == 0
    for label_dim in (1, K + 1):
        with pytest.raises(ValueError, match=f"label_dim is {label_dim}, but .* {K} labels.*data.labelled_factors"):
            LaRVAE(SHAPE, label_dim, 0, network=NETWORK).terms(semi_supervised())
    with pytest.raises(ValueError, match=r"label_dim=data\.label_size"):
        LaRVAE(SHAPE, network=NETWORK)


def test_images_that_are_all_labelled_are_read_by_every_term(monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervised terms are those of the images beside any stream, the others those of the images as a stream."""
    monkeypatch.setattr(Gaussian, "rsample", lambda q: q.mean + 0.5 * (q.logvar / 2).exp())
    model, batch = larvae(), semi_supervised(stream=0)
    images, labels = batch.x, batch.y
    beside = semi_supervised()._replace(x=torch.cat([a_batch(STREAM, seed=5).x, images]))
    beside.y[STREAM:] = labels
    found, supervised = model.terms((images, labels)), model.terms(beside)
    unlabelled = Batch(images, torch.full_like(labels, torch.nan), torch.zeros(LABELLED, dtype=torch.bool))
    for name, term in model.terms(unlabelled).items():
        expected = supervised[name] if name in ("labels", "replacement") else term
        torch.testing.assert_close(found[name].loss, expected.loss, rtol=1e-6, atol=1e-6)
    assert found["labels"].loss > 0
    assert found["replacement"].loss > 0


def test_the_cross_entropy_of_labels_by_hand() -> None:
    """Of the sigmoid of the means, summed over known labels; a mean of 0 is a probability of ½."""
    y = torch.tensor([[1.0, 0.25], [math.nan, 0.0]])
    mean = torch.tensor([[math.log(3.0), 0.0], [7.0, math.log(3.0)]])  # probabilities ¾, ½; any, ¾
    batch = Batch(torch.rand(2, 1, 2, 2), y, torch.ones(2, dtype=torch.bool))
    out = Forward({"z": Gaussian(mean, torch.zeros(2, 2))}, {}, torch.empty(0))
    term = LabelReconstruction("z", 10.0, "bce")(out, batch, torch.tensor(0))
    expected = (-math.log(0.75) + math.log(2) - math.log(0.25)) / 2
    assert term.loss.item() == pytest.approx(10 * expected, rel=1e-6)
    assert term.logs["distance"].item() == pytest.approx((math.hypot(0.25, 0.25) + 0.75) / 2, rel=1e-6)


def test_with_cross_entropy_labels_are_sigmoids_of_the_means() -> None:
    model, images = larvae(tau=0.0, label_loss="bce").eval(), a_batch().x
    torch.testing.assert_close(model.infer_labels(images), model.represent(images)[:, :K].sigmoid())
    batch = semi_supervised()
    with pytest.raises(ValueError, match="labels in"):
        model.train().terms(batch._replace(y=2 * batch.y + 1))


def test_labels_may_have_the_variance_of_the_prior() -> None:
    """Label ½ is at 0 and label 1 at √3, so evenly spread labels have variance 1; all outside reads plain labels."""
    side, batch = math.sqrt(3), semi_supervised()
    labels = batch.y[STREAM:]
    wide, narrow = larvae(label_range=(-side, side)), larvae()
    replaced = wide(batch).sample["y"][STREAM:]
    torch.testing.assert_close(replaced, (labels - 0.5) * 2 * side)
    assert torch.linspace(0, 1, 1001).mul(2 * side).var().item() == pytest.approx(1, abs=0.01)

    mean = wide.encode(batch.x[STREAM:])["y"].code()
    found, plain = wide.terms(batch)["labels"], narrow.terms(batch)["labels"]
    assert found.loss.item() == pytest.approx(100 * float((mean - replaced).square().sum(1).mean()), rel=1e-5)
    inferred = wide.infer_labels(batch.x[STREAM:])
    torch.testing.assert_close(inferred, mean / (2 * side) + 0.5)
    torch.testing.assert_close(found.logs["distance"], (inferred - labels).norm(dim=1).mean())
    assert found.loss.item() != pytest.approx(plain.loss.item(), rel=0.1)

    wide.eval()
    expected = wide.decode({"y": replaced, "z": torch.zeros(LABELLED, Z)}).sigmoid().detach()
    torch.testing.assert_close(wide.generate(labels), expected)
    with pytest.raises(ValueError, match="two rising numbers, not 1 and 1"):
        larvae(label_range=(1.0, 1.0))
    with pytest.raises(ValueError, match="label_range needs label_loss: mse"):
        larvae(label_range=(-1.0, 1.0), label_loss="bce", tau=0.0)


def test_the_learning_rate_is_the_papers() -> None:
    (group,) = larvae().configure_optimizers().param_groups
    assert group["lr"] == 1e-4
    assert larvae(lr=1e-3).lr == 1e-3


def test_images_are_generated_from_labels() -> None:
    model, labels = larvae().eval(), torch.rand(2, K)
    images = model.generate(labels)
    torch.testing.assert_close(images, model.decoder(torch.cat([labels, torch.zeros(2, Z)], 1)).sigmoid().detach())
    walk = model.labels_walk(labels, steps=4)
    assert walk.shape == (2, K, 4, K)
    changed = labels.clone()
    changed[:, 1] = 1 / 3
    torch.testing.assert_close(walk[:, 1, 1], changed)
    torch.testing.assert_close(model.infer_labels(images), model.represent(images)[:, :K])
    nuisance = torch.rand(2, Z)
    torch.testing.assert_close(
        model.generate(labels, nuisance), model.decoder(torch.cat([labels, nuisance], 1)).sigmoid().detach()
    )
    assert list(LaRVAE(SHAPE, K, 0, network=NETWORK).latents) == ["y"]
    with pytest.raises(ValueError, match="shape"):
        model.generate(torch.rand(2, K + 1))


def one_group(model: LaRVAE, unsupervised: dict[str, Regularizer]) -> VAE:
    """The same weights, with labels and nuisance side by side in one group."""
    terms = {**unsupervised, "labels": LabelReconstruction(), "replacement": LabelReplacement()}
    joined = VAE(SHAPE, {"z": GaussianLatent(K + Z)}, terms, NETWORK)
    state = model.state_dict()
    for kind in ("weight", "bias"):
        heads = [state.pop(f"heads.{name}.parameters_of.{kind}").chunk(2) for name in "yz"]
        (means, nuisance), (logvars, more) = zip(*heads, strict=True)
        state[f"heads.z.parameters_of.{kind}"] = torch.cat([means, nuisance, logvars, more])
    joined.load_state_dict(state)
    return joined


@pytest.mark.parametrize("unsupervised", UNSUPERVISED.values(), ids=UNSUPERVISED.keys())
def test_two_groups_cost_what_one_costs(
    unsupervised: Callable[[], dict[str, Regularizer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terms see the groups side by side: with the same weights and noise each is what it is over one group."""
    noise = torch.randn(STREAM + LABELLED, K + Z, generator=torch.Generator().manual_seed(5))
    columns = {K: noise[:, :K], Z: noise[:, K:], K + Z: noise}
    monkeypatch.setattr(Gaussian, "rsample", lambda q: q.mean + (q.logvar / 2).exp() * columns[q.mean.shape[1]])
    model, batch = larvae(unsupervised=unsupervised()), semi_supervised()
    batch.y[STREAM, 1] = torch.nan
    joined = one_group(model, unsupervised())
    torch.testing.assert_close(model.represent(batch.x), joined.represent(batch.x))
    torch.manual_seed(1)
    found = model.terms(batch)
    torch.manual_seed(1)
    for name, expected in joined.terms(batch).items():
        torch.testing.assert_close(found[name].loss, expected.loss, rtol=1e-6, atol=1e-6)
        for key, value in expected.logs.items():
            torch.testing.assert_close(found[name].logs[key], value, rtol=1e-5, atol=1e-6)


def test_any_model_takes_label_terms() -> None:
    for make in (TCVAE, BetaVAE):
        terms = {"labels": LabelReconstruction(alpha=100.0), "replacement": LabelReplacement()}
        assert set(make(SHAPE, K, regularizers=terms, network=NETWORK).terms(semi_supervised())) >= set(terms)


def test_a_term_reads_the_groups_that_it_names() -> None:
    terms = {"kl": KL(["z", "y"]), "more": KL("z", 2.0), "labels_only": KL("y")}
    found = larvae(unsupervised=terms).terms(semi_supervised())
    nats = {name: term.logs["nats"] for name, term in found.items() if name in terms}
    torch.testing.assert_close(nats["kl"], nats["more"] + nats["labels_only"])
    torch.testing.assert_close(found["more"].loss, 2 * found["kl"].logs["nats_z"])


def test_labels_without_a_prior_are_noticed() -> None:
    with pytest.warns(UserWarning, match='no unsupervised term reads "y"'):
        larvae(unsupervised={"kl": KL("z")})


def test_a_training_without_labels_warns_once() -> None:
    model, other = larvae(), larvae()
    with pytest.warns(UserWarning, match=r"no labelled image.*data\.labels"):
        model.training_step(a_batch(4, labels=K))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.training_step(a_batch(4, labels=K))
        other.training_step(semi_supervised())
        other.training_step(a_batch(4, labels=K))  # a later batch without labels is no matter


def test_class_indices_warn_and_name_the_form_of_labels() -> None:
    batch = semi_supervised()
    batch.y[STREAM:, 0] = 9
    model = larvae()
    with pytest.warns(UserWarning, match=r"labels go up to 9, like class indices.*data\.label_form to onehot"):
        model.training_step(batch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.training_step(batch)
