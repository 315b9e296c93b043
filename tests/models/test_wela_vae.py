import math
from itertools import product
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Trainer
from torch import Tensor, nn
from torch.utils.data import DataLoader

import vaezoo
from tests.helpers.commands import SHORT, the_run
from tests.helpers.zoo import NETWORK, SHAPE, a_batch
from vaezoo.callbacks import EvaluateDisentanglement
from vaezoo.cli.main import run
from vaezoo.metrics.base import PoolMetric
from vaezoo.models import BetaVAE, WeLaVAE
from vaezoo.models.wela_vae import GAMMA
from vaezoo.nn.latents import Gaussian
from vaezoo.nn.networks import ConvNetwork
from vaezoo.pictures import SavePictures
from vaezoo.regularizers import CovarianceMatching, LabelLikelihood, TotalCorrelation
from vaezoo.types import Batch, Forward

SIZES = (3, 2)
N = 50  # images in the data set


def model(**options: object) -> WeLaVAE:
    torch.manual_seed(0)
    return WeLaVAE(SHAPE, **{"label_sizes": SIZES, "network": NETWORK, "gamma": 7.0, "dataset_size": N, **options})  # type: ignore[arg-type]


def labels(n: int, sizes: tuple[int, ...] = SIZES) -> Tensor:
    return torch.cat([torch.eye(size)[torch.arange(n) * 5 % 7 % size] for size in sizes], dim=1)


def labelled(n: int = 4, sizes: tuple[int, ...] = SIZES) -> Batch:
    return a_batch(n)._replace(y=labels(n, sizes), labelled=torch.ones(n, dtype=torch.bool))


def posterior(out: Forward) -> Gaussian:
    q = out.posterior["z"]
    assert isinstance(q, Gaussian)
    return q


def density(z: float, mean: float, variance: float) -> float:
    return math.exp(-((z - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def weight(i: int, j: int, rows: int, estimator: str) -> float:
    """What posterior i counts at sample j (Chen et al., 2018: Eq. 5, and App. C.2 for the stratified estimator)."""
    if estimator == "mws":
        return 1 / (N * rows)
    if i == j:
        return 1 / N
    return (N - rows + 1) / (N * (rows - 1)) if i == (j + 1) % rows else 1 / (rows - 1)


def tc_by_loops(z: list[list[float]], mean: list[list[float]], variance: list[list[float]], estimator: str) -> float:
    rows, dims, total = len(z), len(z[0]), 0.0
    for j in range(rows):
        joint, marginals = 0.0, [0.0] * dims
        for i in range(rows):
            q = [density(z[j][k], mean[i][k], variance[i][k]) for k in range(dims)]
            joint += weight(i, j, rows, estimator) * math.prod(q)
            marginals = [m + weight(i, j, rows, estimator) * q[k] for k, m in enumerate(marginals)]
        total += math.log(joint) - sum(map(math.log, marginals))
    return total / rows


@pytest.mark.parametrize(
    ("options", "weight_of_tc", "estimator"),
    [
        ({}, 39.0, "mws"),  # β = 40 by default, β − 1 as in the scripts
        ({"weighting": "paper"}, 40.0, "mws"),
        ({"weighting": "paper"}, 40.0, "mss"),
        ({"beta": 0.0, "weighting": "paper"}, 0.0, "mws"),
        ({"beta": 1.0}, 0.0, "mws"),
    ],
)
@pytest.mark.parametrize("latent_dim", [2, 5])
def test_the_loss_is_a_loop_from_the_paper(
    options: dict[str, object], weight_of_tc: float, estimator: str, latent_dim: int
) -> None:
    """Eq. 3 and 4; without total correlation the γELBO alone."""
    wela, batch = model(**options, estimator=estimator, latent_dim=latent_dim), labelled()
    torch.manual_seed(1)
    out = wela(batch)
    torch.manual_seed(1)
    found = wela.training_step(batch).item()
    rows, q = len(batch.x), posterior(out)
    z, mean = out.sample["z"].double().tolist(), q.mean.double().tolist()
    variance = q.logvar.double().exp().tolist()
    expected = 0.0
    for b in range(rows):
        for logit, pixel in zip(out.reconstruction[b].flatten().tolist(), batch.x[b].flatten().tolist(), strict=True):
            p = 1 / (1 + math.exp(-logit))
            expected -= (pixel * math.log(p) + (1 - pixel) * math.log(1 - p)) / rows
        for m, v in zip(mean[b], variance[b], strict=True):
            expected += 0.5 * (m**2 + v - math.log(v) - 1) / rows
        for logits, start in zip(out.labels, (0, SIZES[0]), strict=True):
            exponentials = [math.exp(logit) for logit in logits[b].tolist()]
            true = batch.y[b, start : start + len(exponentials)].tolist().index(1.0)
            expected -= 7.0 * math.log(exponentials[true] / sum(exponentials)) / rows
    if weight_of_tc:
        expected += weight_of_tc * tc_by_loops(z, mean, variance, estimator)
    assert found == pytest.approx(expected, rel=1e-5)


def test_checkpoints_keep_the_weight_of_the_total_correlation(tmp_path: Path) -> None:
    """Those of 0.1.0, which name none, weighed it by β."""
    for weighting, expected in ("released", 39.0), ("paper", 40.0), (None, 40.0):
        path = tmp_path / f"{weighting}.ckpt"
        vaezoo.save(model(weighting=weighting or "released"), path)
        if weighting is None:
            checkpoint = torch.load(path, weights_only=True)
            del checkpoint["weighting"], checkpoint["hyper_parameters"]["weighting"]
            torch.save(checkpoint, path)
        loaded = vaezoo.load(path)
        vaezoo.save(loaded, path)  # and so do those saved from it
        for wela in (loaded, vaezoo.load(path)):
            term = wela.regularizers["tc"]
            assert isinstance(term, TotalCorrelation)
            assert term.weight == expected


def test_the_encoder_reads_image_and_labels_side_by_side() -> None:
    wela, batch = model(), labelled()
    first, *_ = [m for m in wela.encoder.modules() if isinstance(m, nn.Linear)]
    assert first.in_features == 256 + sum(SIZES)
    hidden = torch.relu(torch.cat([batch.x.flatten(1), batch.y], 1) @ first.weight.T + first.bias)
    head = next(m for m in wela.heads.modules() if isinstance(m, nn.Linear))
    mean = (hidden @ head.weight.T + head.bias)[:, :2]
    torch.testing.assert_close(posterior(wela(batch)).mean, mean)
    torch.testing.assert_close(wela.represent(batch.x, batch.y), mean)
    torch.testing.assert_close(wela.predict_step(batch), mean)
    assert not torch.allclose(wela.represent(batch.x), mean)


@pytest.mark.parametrize("p", range(2, 9))
def test_uniform_labels_cost_two_log_p(p: int) -> None:
    wela, batch = model(label_sizes=(p, p), network=NETWORK), labelled(4, (p, p))
    for head in wela.decoder.heads:  # type: ignore[union-attr]
        for parameter in head.parameters():
            nn.init.zeros_(parameter)
    assert wela.terms(batch)["labels"].logs["nats"].item() == pytest.approx(2 * math.log(p), rel=1e-6)


def test_gamma_is_the_paper_s_or_its_rule() -> None:
    def gamma(shape: tuple[int, int, int], sizes: tuple[int, ...], **options: float) -> float:
        term = WeLaVAE(shape, sizes, network=NETWORK, **options).regularizers["labels"]  # type: ignore[arg-type]
        assert isinstance(term, LabelLikelihood)
        return term.gamma

    assert [gamma((1, 64, 64), (p, p)) for p in range(2, 9)] == list(GAMMA.values())
    assert list(GAMMA.values()) == [2000, 1500, 1000, 800, 750, 600, 500]
    assert gamma((3, 64, 64), (2, 2)) == 3 * 4096 / 2
    assert gamma((1, 64, 64), (2, 6)) == 4096 / 4
    assert gamma((1, 64, 64), (2, 2), gamma=5.0) == 5.0


OBSERVED = [[True, True], [False, True], [False, False], [True, True]]


def test_a_label_costs_the_mean_over_the_rows_that_have_it() -> None:
    wela, batch = model(), labelled()
    for bias in [p for name, p in wela.decoder.named_parameters() if name.startswith("heads") and p.ndim == 1]:
        nn.init.constant_(bias[:1], 5.0)  # class 0 wins, which zeros in the place of a label must not confirm
    for b, j in product(range(4), range(2)):
        if not OBSERVED[b][j]:
            batch.y[b, j * SIZES[0] + 1] = torch.nan  # one NaN is enough
    torch.manual_seed(1)
    out = wela(batch)
    torch.manual_seed(1)
    term = wela.terms(batch)["labels"]
    nats, truth = 0.0, labels(4)
    for j, (logits, part) in enumerate(zip(out.labels, truth.split(SIZES, 1), strict=True)):
        rows = [b for b in range(4) if OBSERVED[b][j]]
        nats -= sum((logits[b].softmax(0) @ part[b]).log().item() for b in rows) / len(rows)
        hits = sum(bool(logits[b].argmax() == part[b].argmax()) for b in rows)
        assert term.logs[f"accuracy_{j}"].item() == pytest.approx(hits / len(rows))
    assert term.loss.item() == pytest.approx(7 * nats, rel=1e-5)


def test_what_was_not_observed_changes_nothing_and_no_gradient_is_nan() -> None:
    wela, batch = model(), a_batch(4, labels=sum(SIZES))
    torch.testing.assert_close(wela.represent(batch.x, batch.y), wela.represent(batch.x))
    torch.testing.assert_close(wela.represent(batch.x, torch.zeros(4, 5)), wela.represent(batch.x))
    assert wela.terms(batch)["labels"].loss == 0
    batch.y[0] = labels(1)
    for y in (batch.y, torch.full_like(batch.y, torch.nan)):
        wela.zero_grad()
        wela.training_step(batch._replace(y=y)).backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in wela.parameters())


def test_without_labels_in_the_encoder_codes_are_those_of_the_image_alone() -> None:
    wela, batch = model(labels_in_encoder=False), labelled()
    assert torch.equal(wela.represent(batch.x, batch.y), wela.represent(batch.x))
    assert next(m for m in wela.encoder.modules() if isinstance(m, nn.Linear)).in_features == 256
    wela.terms(batch)["labels"].loss.backward()
    for module in (wela.encoder, wela.decoder.trunk, wela.decoder.heads):  # the decoder does all the work
        assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())  # type: ignore[union-attr]


def test_the_first_batches_learn_labels_alone() -> None:
    """No image in the loss, the labels weighing β; from then on, and in evaluation always, the paper's loss."""
    wela, plain, batch = model(labels_first=2, beta=30.0), model(beta=30.0), labelled()
    for step in range(4):
        for part in (wela, plain):
            part.step.fill_(step)
            part.zero_grad()
            torch.manual_seed(1)
            part.training_step(batch).backward()
            part.step.fill_(step)
        torch.manual_seed(1)
        terms = wela.terms(batch)
        torch.manual_seed(1)
        paper = plain.terms(batch)
        nats = paper["labels"].logs["nats"].item()
        assert terms["recon"].loss.item() == (0 if step < 2 else pytest.approx(paper["recon"].loss.item()))
        assert terms["labels"].loss.item() == pytest.approx((30 if step < 2 else 7) * nats, rel=1e-5)
        assert all(terms[name].loss == paper[name].loss for name in ("kl", "tc"))
        image, own = ([p.grad for p in m.decoder.image.parameters()] for m in (wela, plain))  # type: ignore[union-attr]
        assert any(g is not None and g.abs().sum() > 0 for g in image) == (step >= 2)
        assert all(g is not None and g.abs().sum() > 0 for g in own)
    wela.eval(), plain.eval()
    wela.step.fill_(0)
    for name, term in wela.terms(batch).items():
        assert term.loss.item() == pytest.approx(plain.terms(batch)[name].loss.item())
    with pytest.raises(ValueError, match="labels_first"):
        model(labels_first=-1)


def test_another_term_may_take_the_place_of_the_total_correlation() -> None:
    covariance = CovarianceMatching("z", "ii", 3.0, 5.0)
    wela, batch = model(regularizers={"tc": covariance}), labelled()
    assert list(wela.regularizers) == ["kl", "tc", "labels"]
    torch.manual_seed(1)
    q = posterior(wela(batch))
    mean, variance = q.mean.double(), q.logvar.double().exp()
    cov = (mean - mean.mean(0)).T @ (mean - mean.mean(0)) / 4 + variance.mean(0).diag()
    expected = 3 * 2 * cov[0, 1] ** 2 + 5 * ((cov[0, 0] - 1) ** 2 + (cov[1, 1] - 1) ** 2)
    torch.manual_seed(1)
    assert wela.terms(batch)["tc"].loss.item() == pytest.approx(expected.item(), rel=1e-5)


def test_labels_join_a_convolutional_network_at_its_dense_layers() -> None:
    wela, batch = model(network=ConvNetwork(channels=(8, 4), hidden=(16,))), labelled()
    first = next(m for m in wela.encoder.modules() if isinstance(m, nn.Linear))
    assert (first.in_features, first.out_features) == (4 * 4 * 4 + 5, 16)
    assert [(head.in_features, head.out_features) for head in wela.decoder.heads] == [(64, 3), (64, 2)]  # type: ignore[union-attr]
    stem = wela.encoder.stem(batch.x)  # type: ignore[operator,union-attr]
    features = torch.relu(first(torch.cat([stem, batch.y], 1)))
    assert torch.equal(wela.represent(batch.x, batch.y), wela.heads["z"](features).mean)
    wela.training_step(batch).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in wela.parameters())


def test_labels_are_learnt_and_classified() -> None:
    wela, batch = model(beta=1.0, gamma=100.0), labelled(12)
    optimizer = torch.optim.Adam(wela.parameters(), 1e-2)
    for _ in range(80):
        optimizer.zero_grad()
        wela.training_step(batch).backward()
        optimizer.step()
    wela.eval()
    truth = torch.stack([part.argmax(1) for part in batch.y.split(SIZES, 1)], dim=1)
    assert torch.equal(wela.classify(batch.x, batch.y), truth)
    logs = wela.terms(batch)["labels"].logs
    assert logs["accuracy_0"] == logs["accuracy_1"] == 1
    assert wela.classify(batch.x).shape == (12, 2)


def test_scores_and_pictures_are_those_of_images_with_their_labels() -> None:
    wela, batch = model().eval(), labelled()
    mean = PoolMetric(lambda codes, factors: {"mean": float(codes.mean())})
    evaluate = EvaluateDisentanglement([mean])
    trainer = Trainer(accelerator="cpu", logger=False, enable_progress_bar=False, callbacks=[evaluate])
    trainer.validate(wela, DataLoader([batch], batch_size=None), verbose=False)
    expected = wela.represent(batch.x, batch.y).mean().item()
    assert trainer.callback_metrics["val/mean"].item() == pytest.approx(expected, rel=1e-5)
    drawn = SavePictures().draw(trainer, wela, batch)
    unlabelled = SavePictures().draw(trainer, wela, batch._replace(y=torch.full_like(batch.y, torch.nan)))
    for name in ("reconstructions", "traversals_z"):
        with_labels, without = drawn[name].pixels(), unlabelled[name].pixels()
        assert with_labels.shape != without.shape or not torch.equal(with_labels, without)


def test_wrong_labels_are_errors_that_say_what_is_wanted() -> None:
    for sizes in ((), (2, 1)):
        with pytest.raises(ValueError, match="one-hot labels"):
            model(label_sizes=sizes)
    with pytest.raises(ValueError, match=r"labels of \[3, 2\] classes are \(B, 5\), one-hot, or .* not \(4, 3\)"):
        model()(a_batch(4))
    other = BetaVAE(SHAPE, 4, network=NETWORK, regularizers={"labels": LabelLikelihood()})
    with pytest.raises(ValueError, match="decodes no labels"):
        other.terms(labelled())


NARROW = '{"class_path": "DenseNetwork", "init_args": {"encoder_widths": [8], "decoder_widths": [8]}}'
BLOBS = ["--model=WeLaVAE", f"--model.network={NARROW}", "--data=BlobsDataModule", "--data.batch_size=8", *SHORT]


def test_one_flag_sets_the_labels_of_data_and_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["fit", *BLOBS, "--data.bins=3", "--data.labels=0.1"]) == 0
    wela = vaezoo.load(the_run("welavae") / "checkpoints" / "last.ckpt")
    assert isinstance(wela, WeLaVAE)
    assert wela.label_sizes == (3, 3)
    assert isinstance(wela.regularizers["labels"], LabelLikelihood)
    assert wela.regularizers["labels"].gamma == 1500
    assert all(value.isfinite().all() for value in wela.state_dict().values())


def test_labels_that_are_not_one_hot_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["fit", "--model=WeLaVAE", "--data=DSpritesDataModule"]) == 1
    assert "label_form: onehot" in capsys.readouterr().err


def test_a_training_without_labels_warns() -> None:
    batch = labelled()
    batch = batch._replace(y=torch.full_like(batch.y, torch.nan), labelled=torch.zeros_like(batch.labelled))
    with pytest.warns(UserWarning, match=r"no labelled image, so WeLaVAE learns no labels: set data\.labels"):
        model().training_step(batch)
