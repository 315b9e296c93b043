"""What a term reads from its model, and a model from the data, so that nobody types it twice."""

import math
from pathlib import Path

import pytest
import torch
import yaml
from torch import Tensor

import vaezoo
from tests.helpers.zoo import NETWORK, SHAPE, a_batch, loader, trainer
from vaezoo.callbacks import AddRegularizer
from vaezoo.cli.main import run
from vaezoo.models import DIPVAE, TCVAE, BetaVAE, FactorVAE, JointVAE, LaRVAE, PartedVAE
from vaezoo.models.base import VAE
from vaezoo.nn.latents import ConcreteLatent, GaussianLatent
from vaezoo.regularizers import (
    KL,
    Capacity,
    CovarianceMatching,
    DiscriminatedTotalCorrelation,
    LabelReplacement,
    TotalCorrelation,
)
from vaezoo.regularizers.groups import SpanningTerm
from vaezoo.types import Batch, Term

K = 3
PIXELS = math.prod(SHAPE)


def labelled_batch(stream: int = 4, labelled: int = 2) -> Batch:
    batch = a_batch(stream + labelled, labels=K)
    batch.labelled[stream:] = True
    batch.y[stream:] = torch.rand(labelled, K, generator=torch.Generator().manual_seed(3))
    return batch


def nll(likelihood: str, logits: Tensor, x: Tensor) -> float:
    """−log p(x|z) of one image, pixel by pixel."""
    total = 0.0
    for logit, pixel in zip(logits.flatten().double().tolist(), x.flatten().double().tolist(), strict=True):
        mean = 1 / (1 + math.exp(-logit))
        total += {
            "bernoulli": -pixel * math.log(mean) - (1 - pixel) * math.log(1 - mean),
            "gaussian": 0.5 * (pixel - mean) ** 2 + 0.5 * math.log(2 * math.pi),
            "laplace": abs(pixel - mean) + math.log(2),
        }[likelihood]
    return total


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian", "laplace"])
def test_label_replacement_takes_the_model_s_likelihood(likelihood: str) -> None:
    torch.manual_seed(0)
    term = LabelReplacement(tau=2.0)
    model = BetaVAE(SHAPE, K, regularizers={"replacement": term}, likelihood=likelihood, network=NETWORK)  # type: ignore[arg-type]
    batch = labelled_batch()
    found = model.terms(batch)["replacement"]
    rows = zip(model.decoder(batch.y[4:]).detach(), batch.x[4:], strict=True)
    expected = sum(nll(likelihood, logits, x) for logits, x in rows) / 2  # every latent is replaced: no KL
    assert found.loss.item() == pytest.approx(2 * expected, rel=1e-5)


def test_a_gaussian_has_one_variance_in_both_reconstructions() -> None:
    def terms(variance: float) -> dict[str, Term]:
        torch.manual_seed(0)
        options = {"likelihood": "gaussian", "likelihood_variance": variance, "network": NETWORK}
        model = BetaVAE(SHAPE, K, regularizers={"replacement": LabelReplacement()}, **options)  # type: ignore[arg-type]
        return model.terms(labelled_batch())

    one, tenth = terms(1.0), terms(0.1)
    for name, nats in {"recon": one["recon"].loss, "replacement": one["replacement"].logs["recon"]}.items():
        found = tenth[name].logs.get("recon", tenth[name].loss)
        constant = math.prod(SHAPE) * 0.5 * math.log(2 * math.pi)
        expected = 10 * (nats - constant) + constant + math.prod(SHAPE) * 0.5 * math.log(0.1)
        assert found.item() == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize(("likelihood", "variance"), [("bernoulli", 0.5), ("gaussian", 0.0)])
def test_a_variance_that_means_nothing_is_refused(likelihood: str, variance: float) -> None:
    with pytest.raises(ValueError, match="likelihood_variance"):
        BetaVAE(SHAPE, likelihood=likelihood, likelihood_variance=variance)  # type: ignore[arg-type]


def test_a_likelihood_that_is_given_wins() -> None:
    term = LabelReplacement(likelihood="laplace")
    BetaVAE(SHAPE, K, regularizers={"replacement": term}, likelihood="gaussian", network=NETWORK)
    assert term.likelihood == "laplace"


@pytest.mark.parametrize(
    ("model", "groups"),
    [
        (lambda term: LaRVAE(SHAPE, K, 2, regularizers={"term": term}, network=NETWORK), ("y", "z")),
        (lambda term: LaRVAE(SHAPE, K, 0, regularizers={"term": term}, network=NETWORK), ("y",)),
        (lambda term: JointVAE(SHAPE, 4, [3], steps=1, regularizers={"term": term}, network=NETWORK), ("z",)),
        (lambda term: PartedVAE(SHAPE, 4, 2, [3], steps=1, regularizers={"term": term}, network=NETWORK), ("z",)),
        (lambda term: VAE(SHAPE, {"a": GaussianLatent(2), "b": GaussianLatent(1)}, {"term": term}), ("a", "b")),
    ],
)
@pytest.mark.parametrize("term", [KL, Capacity, TotalCorrelation, CovarianceMatching, DiscriminatedTotalCorrelation])
def test_a_term_reads_every_group_with_a_standard_normal_prior(
    model: object, groups: tuple[str, ...], term: type[SpanningTerm]
) -> None:
    made = term()
    model(made)  # type: ignore[operator]
    assert made.latents == groups
    assert made.spec["init_args"] == {}


def test_groups_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="latent 'w' of KL is not one of z"):
        VAE(SHAPE, regularizers={"kl": KL("w")}, network=NETWORK)
    with pytest.raises(ValueError, match=r"KL: no latent .* standard normal prior"):
        VAE(SHAPE, {"c": ConcreteLatent([3])}, network=NETWORK)
    with pytest.raises(ValueError, match="names no group"):
        KL([])


def test_a_discriminator_and_a_running_covariance_are_as_wide_as_the_latents(tmp_path: Path) -> None:
    terms = {"tc": DiscriminatedTotalCorrelation(width=8, depth=1), "covariance": CovarianceMatching(momentum=0.5)}
    model = LaRVAE(SHAPE, K, 2, unsupervised={"kl": KL(), **terms}, network=NETWORK)
    assert terms["tc"].discriminator[0].in_features == 5  # type: ignore[index, union-attr]
    assert terms["covariance"].running.shape == (5, 5)
    _, own = model.configure_optimizers().param_groups
    assert [p.shape[-1] for p in own["params"]] == [5, 8, 8, 2]
    fit = trainer(tmp_path, 2, enable_checkpointing=False)
    fit.fit(model, loader(2))
    assert not torch.equal(terms["covariance"].running, torch.eye(5))  # type: ignore[arg-type]
    fit.save_checkpoint(tmp_path / "model.ckpt")
    loaded = vaezoo.load(tmp_path / "model.ckpt")
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in loaded.state_dict().items())


def test_a_term_that_is_added_later_is_wired_too(tmp_path: Path) -> None:
    added = DiscriminatedTotalCorrelation(width=8, depth=1)
    model = BetaVAE(SHAPE, 4, network=NETWORK)
    fit = trainer(tmp_path, 1, callbacks=[AddRegularizer("tc", added)], enable_checkpointing=False)
    fit.fit(model, loader(2))
    _, own = fit.optimizers[0].param_groups
    assert own["params"] == list(added.parameters())  # its layers were there when the optimizer was made
    fit.save_checkpoint(tmp_path / "model.ckpt")
    loaded = vaezoo.load(tmp_path / "model.ckpt").regularizers["tc"].get_submodule("discriminator")
    for found, expected in zip(loaded.parameters(), added.discriminator.parameters(), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("term", [DiscriminatedTotalCorrelation, CovarianceMatching])
def test_another_width_than_the_latents_is_one_error(term: type[SpanningTerm]) -> None:
    with pytest.raises(ValueError, match=f"dim 7 of {term.__name__}: y and z of the model have 5 dimensions: leave"):
        LaRVAE(SHAPE, K, 2, unsupervised={"tc": term(dim=7)}, network=NETWORK)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="z of the model has 4 dimensions"):
        BetaVAE(SHAPE, 4, regularizers={"tc": term(dim=5)}, network=NETWORK)  # type: ignore[call-arg]


def test_presets_agree_with_themselves() -> None:
    FactorVAE(SHAPE, 4, network=NETWORK)
    DIPVAE(SHAPE, 4, momentum=0.5, network=NETWORK)


def test_the_total_correlation_counts_the_training_images(tmp_path: Path) -> None:
    model = TCVAE(SHAPE, 4, estimator="mss", network=NETWORK)
    given = TotalCorrelation(dataset_size=7)
    model.add_regularizer("given", given)
    term = model.regularizers["tc"]
    assert isinstance(term, TotalCorrelation)
    assert term.dataset_size is None  # nothing is known yet
    fit = trainer(tmp_path, 2, enable_checkpointing=False)
    fit.fit(model, loader(3))
    assert (term.dataset_size, given.dataset_size) == (24, 7)
    fit.save_checkpoint(tmp_path / "model.ckpt")
    loaded = vaezoo.load(tmp_path / "model.ckpt")
    batch = a_batch()
    for name in ("tc", "given"):
        assert torch.equal(loaded.eval().terms(batch)[name].loss, model.eval().terms(batch)[name].loss)
    q = model.encode(batch.x)["z"]
    joint, marginals = vaezoo.functional.aggregate_log_densities(q.mode(), q.mean, q.logvar, 24, "mss")  # type: ignore[attr-defined]
    expected = (joint - marginals).mean()
    torch.testing.assert_close(loaded.terms(batch)["tc"].logs["tc"], expected)


TINY = {
    "seed_everything": 0,
    "model": {
        "class_path": "LaRVAE",
        "init_args": {
            "nuisance_dim": 2,
            "network": {"class_path": "ConvNetwork", "init_args": {"channels": [4, 4, 4, 4], "hidden": [8]}},
        },
    },
    "data": {
        "class_path": "DSpritesDataModule",
        "init_args": {"source": "render", "batch_size": 4, "labels": 40, "val_size": 32, "test_size": 256},
    },
    "trainer": {
        "max_steps": 2,
        "limit_val_batches": 1,
        "num_sanity_val_steps": 0,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    },
}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("VAEZOO_RUN", "VAEZOO_LAST", "VAEZOO_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(yaml.safe_dump(TINY))
    return "--config=tiny.yaml"


def test_the_command_line_takes_labels_and_images_from_the_data(config: str) -> None:
    assert run(["fit", config, "--data.labelled_factors=[shape, scale]"]) == 0
    (folder,) = Path("runs/tiny").iterdir()
    model = vaezoo.load(folder / "checkpoints" / "last.ckpt")
    assert isinstance(model, LaRVAE)
    assert model.label_dim == 2
    assert model.dataset_size == 737_280 - 32 - 256
    assert model.regularizers["tc"].dataset_size == model.dataset_size
    # What it leaves behind goes on, is scored and drawn by group; nothing of the data was typed into it.
    again = [f"--config={folder}/config.yaml", f"--ckpt_path={folder}/checkpoints/last.ckpt"]
    assert run(["fit", *again, "--experiment=more", "--trainer.max_steps=3"]) == 0
    checkpoint = f"--ckpt_path={folder}/checkpoints/last.ckpt"
    for latent, width in (("y", 2), ("z", 2)):
        score = ["--metrics=active_units", "--images=64", "--resamples=0", f"--latents={latent}"]
        assert run(["evaluate", checkpoint, *score]) == 0
        assert run(["traverse", checkpoint, f"--latents={latent}", "--prior", "--steps=2"]) == 0
        assert len(list((folder / "traversals" / f"prior_{latent}").iterdir())) == width


def test_an_explicit_number_of_labels_must_be_that_of_the_data(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", config, "--model.label_dim=5"]) == 0
    assert run(["fit", config, "--model.label_dim=5", "--data.labelled_factors=[shape, scale]"]) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "vaezoo: error" in line]
    assert "model.label_dim is 5, but the data has 2 labels" in line
    assert "data.labelled_factors" in line


def test_groups_can_be_named_on_the_command_line(config: str) -> None:
    terms = yaml.safe_dump({"kl": {"class_path": "KL"}}, default_flow_style=True).strip()
    named = [f"--model.unsupervised={terms}", "--model.unsupervised.kl.init_args.latent=[y, z]"]
    assert run(["fit", config, *named]) == 0
    (folder,) = Path("runs/tiny").iterdir()
    assert vaezoo.load(folder / "checkpoints" / "last.ckpt").regularizers["kl"].latents == ("y", "z")


def test_attributes_that_hold_text_or_nothing_are_set_as_on_any_module() -> None:
    model = BetaVAE(SHAPE, network=NETWORK)
    model.note = None
    model.note = "text"
    assert vars(model)["note"] == model.note == "text"
    with pytest.raises(TypeError, match="cannot assign 'str' as buffer 'step'"):
        model.step = "text"
    with pytest.raises(TypeError, match="cannot assign 'str' as child module"):
        model.encoder = "text"
    assert isinstance(model.step, Tensor)
    model.encoder = None
    assert model.encoder is None
    assert "encoder" not in vars(model)
