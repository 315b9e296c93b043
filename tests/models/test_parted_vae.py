import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from lightning.pytorch import Trainer
from torch import Tensor, nn

from datamodules.loader import BatchLoader, Epochs
from tests.helpers.zoo import NETWORK, SHAPE, a_batch, in_order, trainer
from vaezoo.models import PartedVAE
from vaezoo.nn.latents import Concrete, Gaussian
from vaezoo.nn.mixture import AttendedHead, MixtureGaussian
from vaezoo.regularizers import AggregatePosterior, Entropy, Overlap, Regularizer, TotalCorrelation
from vaezoo.types import Batch, Forward, Term

ONE, TWO = ([3], 2, [[0.2, 0.3, 0.5]]), ([3, 2], 1, [[0.2, 0.3, 0.5], [0.9, 0.1]])
variables = pytest.mark.parametrize(("discrete", "dim_u", "priors"), [ONE, TWO], ids=["K = 1", "K = 2"])


def model(discrete: Sequence[int] = (3,), dim_u: int = 2, priors: object = None, **options: object) -> PartedVAE:
    torch.manual_seed(0)
    options = {"network": NETWORK, "steps": 10, **options}
    return PartedVAE(SHAPE, 4, dim_u, discrete, priors, **options)  # type: ignore[arg-type]


def mixture(parted: PartedVAE) -> AttendedHead:
    head = parted.heads["u"]
    assert isinstance(head, AttendedHead)
    return head


def labelled(n: int = 8, labels: int = 4, sizes: Sequence[int] = (3,), seed: int = 0) -> Batch:
    """N rows without labels, then some with."""
    x = a_batch(n + labels, seed).x
    y = torch.full((n + labels, len(sizes)), torch.nan)
    y[n:] = torch.stack([torch.arange(labels) * (i + 1) % k for i, k in enumerate(sizes)], 1)
    return Batch(x, y, torch.arange(n + labels) >= n)


def fit(parted: PartedVAE, folder: Path, batches: list[Batch], steps: int = -1, **options: object) -> Trainer:
    run = trainer(folder, steps, enable_checkpointing=False, **options)
    run.fit(parted, in_order(batches))
    return run


def gaussian_kl(mu: float, logvar: float, mu_p: float, logvar_p: float) -> float:
    return 0.5 * (logvar_p - logvar + (math.exp(logvar) + (mu - mu_p) ** 2) / math.exp(logvar_p) - 1)


def coefficient(m1: list[float], v1: list[float], m2: list[float], v2: list[float]) -> float:
    """A.1, with diagonal covariances."""
    distance = 0.0
    for a, s, b, t in zip(m1, v1, m2, v2, strict=True):
        mean_variance = (s + t) / 2
        distance += (a - b) ** 2 / mean_variance / 8 + 0.5 * math.log(mean_variance / math.sqrt(s * t))
    return math.exp(-distance)


@variables
def test_the_loss_is_a_loop_from_the_paper(discrete: list[int], dim_u: int, priors: list[list[float]]) -> None:
    """Eq. 6 and A.5 with |·| about the capacity gaps, each term and their sum."""
    gammas = {"gamma_z": 2.0, "gamma_u": 3.0, "gamma_c": 5.0, "gamma_h": 7.0, "gamma_bc": 11.0, "tolerance": 0.1}
    parted = model(discrete, dim_u, priors, **gammas, max_nats_z=5.0, max_nats_u=8.0)
    parted.step += 4
    batch = a_batch(3)
    torch.manual_seed(1)
    out = parted(batch)
    torch.manual_seed(1)
    terms = {name: term.loss.item() for name, term in parted.terms(batch).items()}
    z, u, c = (out.posterior[name] for name in "zuc")
    assert isinstance(z, Gaussian)
    assert isinstance(u, MixtureGaussian)
    assert isinstance(c, Concrete)
    head = mixture(parted)
    recon = kl_z = kl_u = entropy = aggregate = overlap = 0.0
    for b in range(3):
        for logit, pixel in zip(out.reconstruction[b].flatten().double(), batch.x[b].flatten(), strict=True):
            p = torch.sigmoid(logit).item()
            recon -= (pixel.item() * math.log(p) + (1 - pixel.item()) * math.log(1 - p)) / 3
        for mu, logvar in zip(z.mean[b].tolist(), z.logvar[b].tolist(), strict=True):
            kl_z += gaussian_kl(mu, logvar, 0.0, 0.0) / 3
    for k, size in enumerate(discrete):
        q = c.logits[k].softmax(1).tolist()
        means = head.component_mean[k].tolist()
        variances = [[math.exp(2 * math.tanh(w) - 1) for w in row] for row in head.component_spread[k].tolist()]
        for b in range(3):
            entropy -= sum(a * math.log(a) for a in q[b]) / 3
            for i in range(size):
                for d in range(dim_u):
                    mu, logvar = u.mean[b, k * dim_u + d].item(), u.logvar[b, k * dim_u + d].item()
                    kl_u += q[b][i] * gaussian_kl(mu, logvar, means[i][d], math.log(variances[i][d])) / 3
        for i in range(size):
            share = sum(q[b][i] for b in range(3)) / 3
            aggregate += share * math.log(share / priors[k][i])
            for j in range(i):
                overlap += max(coefficient(means[i], variances[i], means[j], variances[j]) - 0.1, 0)
    expected = {
        "recon": recon,
        "capacity_z": 2 * abs(5 * 0.4 - kl_z),
        "capacity_u": 3 * abs(8 * 0.4 - kl_u),
        "aggregate": 5 * aggregate,
        "entropy": 7 * entropy,
        "overlap": 11 * overlap,
    }
    assert terms == pytest.approx(expected, rel=1e-5)
    torch.manual_seed(1)
    assert parted.training_step(batch).item() == pytest.approx(sum(expected.values()), rel=1e-5)
    assert overlap > 0


@variables
def test_the_posterior_of_u_is_a_loop_from_figure_2(discrete: list[int], dim_u: int, priors: object) -> None:
    """a = sigmoid(k · (W c + b)); mean and log-variance from h · a; the encoder runs once; the decoder reads z, u."""
    parted = model(discrete, dim_u)
    parted.step += 1000
    runs, decoded = [], []
    parted.encoder.register_forward_hook(lambda *call: runs.append(call[-1]))
    parted.decoder.register_forward_pre_hook(lambda _, inputs: decoded.append(inputs[0]))
    out = parted(a_batch(3))
    (h,) = runs
    u, first = out.posterior["u"], 0
    assert isinstance(u, MixtureGaussian)
    for k, size in enumerate(discrete):
        attention, linear = mixture(parted).attention[k], mixture(parted).parameters_of[k]
        assert isinstance(attention, nn.Linear)
        assert isinstance(linear, nn.Linear)
        for b in range(3):
            c = out.sample["c"][b, first : first + size]
            a = 1 / (1 + torch.exp(-1.2 * (attention.weight @ c + attention.bias)))
            expected = linear.weight @ (h[b] * a) + linear.bias
            found = torch.cat([q[b, k * dim_u : (k + 1) * dim_u] for q in (u.mean, u.logvar)])
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
        first += size
    assert torch.equal(decoded[0], torch.cat([out.sample["z"], out.sample["u"]], 1))
    assert out.sample["c"].sum(1).tolist() == pytest.approx([len(discrete)] * 3)
    assert 0 < out.sample["c"].max() < 1  # relaxed


@pytest.mark.parametrize(("step", "expected"), [(0, 1.0), (1000, 1.2), (35_000, 8.0), (100_000, 8.0)])
def test_the_attention_sharpens_with_the_steps_and_is_sharp_in_evaluation(step: int, expected: float) -> None:
    parted, seen = model(), list[float]()
    parted.step += step
    mixture(parted).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[3].item()))
    parted(a_batch())
    parted.eval()(a_batch())
    parted.train().represent(a_batch().x)
    assert seen == pytest.approx([expected, 8.0, 8.0])


def test_sharpness_and_its_ramp_are_arguments() -> None:
    """At logit 1, a = sigmoid(k): k is 1 + (4 − 1) · 5/10 after 5 of 10 steps, and 4 in evaluation."""
    parted = model(sharpness=4.0, sharpening_steps=10)
    attention, found = mixture(parted).attention[0], []
    nn.init.zeros_(attention.weight)  # type: ignore[arg-type]
    nn.init.ones_(attention.bias)  # type: ignore[arg-type]
    parted.encoder.register_forward_hook(lambda *_: torch.ones(8, 32))
    mixture(parted).parameters_of[0].register_forward_hook(lambda _, args, __: found.append(args[0][0, 0].item()))
    parted.step.fill_(5)
    parted.infer(a_batch().x)
    parted.eval().encode(a_batch().x)
    assert found == pytest.approx([1 / (1 + math.exp(-k)) for k in (2.5, 4.0)])


def test_without_absolute_values_the_gaps_are_those_of_equation_6() -> None:
    def gaps(absolute: bool) -> list[tuple[float, float]]:
        parted = model(absolute=absolute, max_nats_z=1000.0, max_nats_u=2000.0, gamma_z=2.0, gamma_u=3.0)
        parted.step.fill_(10)
        torch.manual_seed(1)
        terms = parted.terms(a_batch())
        names = "capacity_z", "capacity_u"
        return [(terms[name].loss.item(), terms[name].logs["nats"].item()) for name in names]

    for (loss, nats), (signed, _), capacity, gamma in zip(gaps(True), gaps(False), (1e3, 2e3), (2, 3), strict=True):
        assert loss == pytest.approx(gamma * (capacity - nats), rel=1e-5)
        assert signed == pytest.approx(-loss, rel=1e-6)


def test_learning_rates_stop_at_the_released_eps() -> None:
    for eps, expected in ({}, (1e-6, 1e-7)), ({"eps": (1e-3, 1e-4)}, (1e-3, 1e-4)):
        _, schedulers = model(**eps).configure_optimizers()
        assert tuple(scheduler.eps for scheduler in schedulers) == expected


def test_total_correlation_spans_z_and_u() -> None:
    """A loop over pairs of images and the dimensions of both groups; no prior enters, as that of u is a mixture."""
    parted, batch = model(regularizers={"tc": TotalCorrelation(["z", "u"], 2.0, 100)}), a_batch(5)
    with torch.no_grad():
        out = parted(batch)
    term = parted.regularizers["tc"](out, batch, parted.step)
    z = torch.cat([out.sample[name] for name in "zu"], 1).double()
    posteriors = [out.posterior[name] for name in "zu"]
    assert all(isinstance(q, Gaussian) for q in posteriors)
    mean, logvar = (torch.cat([getattr(q, part) for q in posteriors], 1).double() for part in ("mean", "logvar"))
    tc = 0.0
    for j in range(5):
        pairs = torch.distributions.Normal(mean, (logvar / 2).exp()).log_prob(z[j]).exp()  # (images, dimensions)
        assert pairs.shape == (5, 6)
        tc += math.log(pairs.prod(1).sum() / 500) - sum(math.log(pairs[:, d].sum() / 500) for d in range(6))
    assert term.loss.item() == pytest.approx(2 * tc / 5, rel=1e-4)
    assert set(term.logs) == {"mi", "tc"}


def test_the_prior_starts_as_in_the_released_code() -> None:
    head = mixture(model([100, 100], 50))
    for p, raw in zip(head.components(), head.component_spread, strict=True):
        assert abs(p.mean.mean()) < 0.06
        assert abs(p.mean.std() - 1) < 0.06
        assert abs(raw.std() - 1) < 0.06
        assert -3 < p.logvar.min() < -2.5
        assert 0.5 < p.logvar.max() < 1


def test_components_apart_cost_nothing_and_equal_ones_cost_every_pair_once() -> None:
    parted = model([3, 2], 2, gamma_bc=2.0, tolerance=0.25)
    head = mixture(parted)
    for mean, spread in zip(head.component_mean, head.component_spread, strict=True):
        nn.init.zeros_(mean)
        nn.init.zeros_(spread)
    assert parted.terms(a_batch())["overlap"].loss.item() == pytest.approx(2 * (3 + 1) * 0.75)
    for mean in head.component_mean:
        mean.data += 100 * torch.arange(len(mean))[:, None]
    assert parted.terms(a_batch())["overlap"].loss.item() == 0


def test_u_depends_on_its_own_class_alone() -> None:
    parted, c = model([3, 2], 1), torch.rand(1, 5)
    weights = (torch.ones(1, 3), torch.ones(1, 2))
    h = torch.randn(1, 32)
    jacobian = torch.autograd.functional.jacobian(
        lambda c: mixture(parted)(h, c, weights, torch.tensor(8.0)).mean[0], c
    )[:, 0]
    assert jacobian[0, :3].abs().min() > 0
    assert jacobian[1, 3:].abs().min() > 0
    assert jacobian[0, 3:].abs().max() == jacobian[1, :3].abs().max() == 0


@variables
@pytest.mark.parametrize("labels", [4, 0])
def test_training_is_two_steps_of_adam_in_turn(
    discrete: list[int], dim_u: int, priors: object, labels: int, tmp_path: Path
) -> None:
    """First on the labelled rows, encoder and class logits alone, then on the others; unsupervised without labels."""
    parted, twin = (model(discrete, dim_u, priors, lr=1e-2) for _ in range(2))
    batches = [labelled(8, labels, discrete, seed) for seed in range(3)]
    torch.manual_seed(1)
    run = fit(parted, tmp_path, batches, 3)
    assert (run.global_step, parted.step) == (3, 3)
    torch.manual_seed(1)
    supervised = torch.optim.Adam([*twin.encoder.parameters(), *twin.heads["c"].parameters()], lr=1e-2)
    full = torch.optim.Adam(twin.parameters(), lr=1e-2)
    for x, y, _ in batches:
        if labels:
            logits = twin.heads["c"](twin.encoder(x[8:])).logits
            entropies = [F.cross_entropy(logits[k], y[8:, k].long()) for k in range(len(discrete))]
            supervised.zero_grad()
            torch.stack(entropies).sum().backward()
            supervised.step()
        loss = sum(term.loss for term in twin.terms(a_batch(8)._replace(x=x[:8])).values())
        assert isinstance(loss, Tensor)
        full.zero_grad()
        loss.backward()
        full.step()
        twin.step += 1
    for (name, found), expected in zip(parted.named_parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(found, expected, msg=name)


def test_labels_alone_train_the_encoder_and_the_class_logits_alone(tmp_path: Path) -> None:
    parted, before = model(labels_only=True, lr=1e-2), model(labels_only=True)
    run = fit(parted, tmp_path, [labelled()] * 30, 30)
    assert (run.global_step, parted.step) == (30, 30)
    changed = {name for name, p in parted.named_parameters() if not torch.equal(p, before.get_parameter(name))}
    assert changed == {name for name, _ in before.named_parameters() if name.startswith(("encoder", "heads.c"))}
    assert torch.equal(parted.classify(labelled().x[8:]), labelled().y[8:])
    with pytest.raises(ValueError, match="needs labelled images"):
        fit(model(labels_only=True), tmp_path, [a_batch()], 1)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_fewer_labels_than_a_batch(precision: str, tmp_path: Path) -> None:
    images, digits = a_batch(64).x, torch.arange(64) % 3

    def fetch(ids: Tensor, count: int) -> Batch:
        known = torch.arange(len(ids)) >= len(ids) - count
        y = torch.where(known, digits[ids].float(), torch.nan)[:, None]
        return Batch(images[ids], y, known)

    loader = BatchLoader(fetch, Epochs(torch.arange(64), 32, True, 0, torch.arange(10), 32))
    parted = model(lr=1e-2)
    run = trainer(tmp_path, 40, enable_checkpointing=False, precision=precision)
    run.fit(parted, loader)
    assert run.callback_metrics["train/accuracy"] == 1
    assert all(value.isfinite().all() for value in parted.state_dict().values())


def test_capacities_count_batches_under_two_optimizers(tmp_path: Path) -> None:
    parted = model(max_nats_z=5.0, steps=10)
    run = fit(parted, tmp_path, [labelled()] * 4, max_epochs=1)
    assert run.callback_metrics["train/capacity_z/capacity"].item() == pytest.approx(5 * 3 / 10)
    assert parted.terms(a_batch())["capacity_z"].logs["capacity"].item() == pytest.approx(5 * 4 / 10)


def test_learning_rates_halve_on_plateaus_of_epoch_means_and_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cooldown 0 halves at every epoch after the first, cooldown 1 at every second one of these."""

    monkeypatch.setenv("PL_GLOBAL_SEED", "3")

    def run(steps: int, checkpoint: Path | None = None) -> tuple[PartedVAE, Trainer]:
        parted = model(lr=1e-2, patience=0, cooldown=(0, 1), threshold=(0.9, 0.9))
        done = trainer(tmp_path, steps, enable_checkpointing=False)
        loader = in_order([labelled(seed=seed) for seed in range(6)], shuffle=True)
        done.fit(parted, loader, ckpt_path=checkpoint, weights_only=True)
        return parted, done

    unbroken, reference = run(25)
    assert [o.param_groups[0]["lr"] for o in reference.optimizers] == [1e-2 / 8, 1e-2 / 4]
    assert unbroken.epoch_losses[:, 1].tolist() == [1, 1]
    for stop in (15, 12):
        _, first = run(stop)
        first.save_checkpoint(tmp_path / "first.ckpt")
        resumed, done = run(25, tmp_path / "first.ckpt")
        for (name, a), b in zip(unbroken.state_dict().items(), resumed.state_dict().values(), strict=True):
            assert torch.equal(a, b), name
        for config, other in zip(reference.lr_scheduler_configs, done.lr_scheduler_configs, strict=True):
            assert config.scheduler.state_dict() == other.scheduler.state_dict()


def test_the_schedulers_see_the_epoch_s_mean_losses(tmp_path: Path) -> None:
    parted = model(lr=0.0)
    batches = [labelled(seed=seed) for seed in range(3)]
    run = fit(parted, tmp_path, batches, max_epochs=1)
    entropies = [F.cross_entropy(parted.encode(b.x[8:])["c"].logits[0], b.y[8:, 0].long()) for b in batches]  # type: ignore[attr-defined]
    best = [config.scheduler.best for config in run.lr_scheduler_configs]  # type: ignore[union-attr]
    assert best[0] == pytest.approx(torch.stack(entropies).mean().item())
    assert best[1] == pytest.approx(run.callback_metrics["train/loss"].item(), rel=0.2)
    assert parted.epoch_losses.abs().sum() == 0


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (labelled(sizes=(3, 2)), "2 columns for 1 variables"),
        (labelled()._replace(y=labelled().y / 2), "class indices"),
        (labelled(sizes=(5,)), r"the model has \[\d\]: raise model.discrete to \[4\]"),
    ],
)
def test_labels_that_are_not_classes_of_c_are_refused(batch: Batch, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        fit(model(), tmp_path, [batch], 1)


def test_accuracy_is_logged_without_a_map_and_unknown_labels_do_not_count(tmp_path: Path) -> None:
    parted = model([3, 2], 1).eval()
    batch = a_batch(6)
    y = parted.classify(batch.x).float()
    y[0, 0] = (y[0, 0] + 1) % 3
    y[1, 1] = torch.nan
    batch = Batch(batch.x, y, torch.ones(6, dtype=torch.bool))
    run = trainer(tmp_path, 1)
    assert run.validate(parted, in_order([batch]), verbose=False)[0]["val/accuracy"] == pytest.approx(10 / 11)
    assert run.test(parted, in_order([batch]), verbose=False)[0]["test/accuracy"] == pytest.approx(10 / 11)
    others = batch._replace(y=torch.rand(6, 5))  # labels of something else
    assert "test/accuracy" not in run.test(parted, in_order([others]), verbose=False)[0]


def test_inference() -> None:
    parted, x = model([3, 2], 2).eval(), a_batch(6).x
    posterior = parted.encode(x)
    codes = torch.cat([posterior["z"].mode(), posterior["u"].mode()], 1)
    assert torch.equal(parted.represent(x), codes)
    assert torch.equal(parted.train().represent(x), codes)
    expected = [p.argmax(1) for p in posterior["c"].code().split([3, 2], 1)]
    assert torch.equal(parted.classify(x), torch.stack(expected, 1))
    assert {name: len(nats) for name, nats in parted.unit_nats(x).items()} == {"z": 4, "u": 4, "c": 2}


def test_traversals_move_u_around_itself_and_to_the_mean_of_each_class() -> None:
    parted, x = model([3, 2], 2).eval(), a_batch(2).x
    seen: list[Tensor] = []
    u = parted.encode(x)["u"].mode()
    parted.decoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0][:, 4:]))
    parted.traverse(x, "u", units=[1], steps=2, span=(-1.0, 1.0))
    moved = u[:, None] + torch.tensor([[-1.0], [1.0]]) * torch.eye(4)[1]
    torch.testing.assert_close(seen[0], moved.flatten(0, 1))
    parted.traverse(x, "c", units=[1])
    means = mixture(parted).component_mean[1]
    expected = [torch.cat([row[:2], mean]) for row in u for mean in means]
    torch.testing.assert_close(seen[1], torch.stack(expected))


def test_samples_of_a_class_come_from_its_component() -> None:
    parted = model([3, 2], 1, [[0.2, 0.3, 0.5], [0.9, 0.1]]).eval()
    p, q = mixture(parted).components()
    seen: list[Tensor] = []
    parted.decoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    parted.sample_class(20_000, k=1, variable=0)
    parted.sample(20_000)
    assert seen[0][:, 4].mean().item() == pytest.approx(p.mean[1].item(), abs=0.05)
    assert seen[0][:, 4].std().item() == pytest.approx((p.logvar[1] / 2).exp().item(), abs=0.05)
    shares = torch.tensor([0.9, 0.1])
    for drawn in seen:  # the other variable is drawn from the mixture
        assert drawn[:, 5].mean().item() == pytest.approx((shares @ q.mean).item(), abs=0.05)
        assert drawn[:, :4].std(0).tolist() == pytest.approx([1] * 4, abs=0.05)
    with pytest.raises(ValueError, match="within the discrete sizes"):
        parted.sample_class(1, k=2, variable=1)


def test_transfer_keeps_the_classes_and_takes_the_rest_from_the_donors() -> None:
    parted, x = model().eval(), a_batch(5).x
    images = parted.transfer(x[:2], x[2:])
    assert images.shape == (2, 3, *SHAPE)
    posterior = parted.encode(x)
    mixed = {"z": posterior["z"].mode()[3:4], "u": posterior["u"].mode()[1:2]}
    torch.testing.assert_close(images[1, 1:2], parted.decode(mixed).sigmoid())
    torch.testing.assert_close(parted.transfer(x[:1], x[:1])[0], parted.reconstruct(x[:1]))


def test_prior_curves_integrate_to_the_shares_of_the_classes() -> None:
    parted = model([3, 2], 2, [[0.2, 0.3, 0.5], [0.9, 0.1]])
    grid = torch.linspace(-20, 20, 4001)
    curves = parted.prior_curves(3, grid)
    torch.testing.assert_close(torch.trapezoid(curves, grid), torch.tensor([0.9, 0.1]))
    means = torch.trapezoid(curves * grid, grid) / torch.tensor([0.9, 0.1])
    torch.testing.assert_close(means, mixture(parted).component_mean[1][:, 1].detach(), atol=1e-4, rtol=0)


@pytest.mark.parametrize("term", [AggregatePosterior("z"), Entropy("u"), Overlap("z")])
def test_terms_refuse_latents_of_another_kind(term: nn.Module) -> None:
    parted = model()
    with pytest.raises(TypeError, match="needs a"):
        term(parted(a_batch()), a_batch(), parted.step)


@pytest.mark.parametrize("priors", [[[0.5, 0.5]], [[0.5, 0.4, 0.2]], [[0.2, 0.3, 0.5]] * 2])
def test_priors_that_are_not_distributions_over_the_classes_are_refused(priors: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="priors"):
        model(priors=priors)


def test_a_term_that_reads_labels_can_be_added(tmp_path: Path) -> None:
    """The full step then sees all rows, and every term those that are its own."""

    class Count(Regularizer):
        def __init__(self, supervised: bool) -> None:
            super().__init__()
            self.supervised, self.seen = supervised, []  # type: ignore[var-annotated]

        def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
            rows = (len(batch.x), len(out.posterior["u"].kl()), len(out.posterior["c"].kl()))
            self.seen.append(rows)
            return Term(torch.zeros(()), {})

    counts = {"reads": Count(True), "does_not": Count(False)}
    parted = model()
    for name, count in counts.items():
        parted.add_regularizer(name, count)
    fit(parted, tmp_path, [labelled(8, 4)], 1)
    assert (counts["reads"].seen, counts["does_not"].seen) == ([(4, 4, 4)], [(8, 8, 8)])


def test_a_training_without_labels_says_so(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"PartedVAE trains without labels; set data\.labels"):
        fit(model(), tmp_path, [labelled(labels=0)], 1)
