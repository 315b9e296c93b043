"""What experiments/ resolve to, beside the papers' constants: typed by hand from the papers and their released code."""

from typing import Any

import pytest

from tests.helpers.parser import parsed
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.xdist_group("studies")  # one worker makes the parser

Row = dict[str, Any]


def row(model: str, data: str, **constants: Any) -> Row:
    """A configuration's constants: `model_…`, `data_…` and `trainer_…`, the rest of a name being the option's."""
    return {"model": model, "data": data, "model_likelihood": "bernoulli", **constants}


def joint(data: str, dim: int, gamma: float, nats: tuple[float, float], steps: int, lr: float, **more: Any) -> Row:
    """Dupont, 2018, App. C; the released code's for dSprites. Batches of 64, 100 epochs, temperature .67."""
    weights = {"model_gamma_z": gamma, "model_gamma_c": gamma, "model_max_nats_z": nats[0], "model_max_nats_c": nats[1]}
    own = {"model_continuous": dim, "model_discrete": [10], "model_steps": steps, "model_lr": lr, "model_network": None}
    fixed = {"model_temperature": 0.67, "data_batch_size": 64, "trainer_max_epochs": 100, "model_scaling": "released"}
    return row("JointVAE", data, **{**weights, **own, **fixed, **more})


def parted(data: str, gammas: tuple[float, ...], nats: tuple[float, float], steps: int, **more: Any) -> Row:
    """Hajimiri et al., 2021, Table 6: γz = γu, γc, γh, γbc, δ; capacities of z and u; batches of 64."""
    names = ("gamma_z", "gamma_c", "gamma_h", "gamma_bc", "tolerance")
    weights = {f"model_{name}": value for name, value in zip(names, gammas, strict=True)}
    own = {"model_gamma_u": gammas[0], "model_max_nats_z": nats[0], "model_max_nats_u": nats[1], "model_steps": steps}
    fixed = {"model_temperature": 0.67, "data_batch_size": 64, "model_network": None, "model_threshold": (0.1, 0.01)}
    return row("PartedVAE", data, **{**weights, **own, **fixed, **more})


def kumar(model: str, data: str, dim: int, batch: int, network: str, **more: Any) -> Row:
    """Kumar et al., 2018, Sec. 4; networks of Higgins et al., 2017, Table 1."""
    fixed = {"model_latent_dim": dim, "data_batch_size": batch, "model_network": network}
    return row(model, data, **{**fixed, **more})


def nie(data: str, tau: float, labels: int, terms: dict[str, Any]) -> Row:
    """Nie et al., 2020, Sec. 5 and App. D: dim z 5, Adam at 1e-4, 1M iterations; η of all labels."""
    budget = {"model_lr": 1e-4, "trainer_max_steps": 1_000_000, "data_batch_size": 64, "model_network": None}
    own = {"model_nuisance_dim": 5, "model_tau": tau, "data_labels": labels, "model_alpha": 100.0}
    return row("LaRVAE", data, model_unsupervised=terms, **budget, **own)


def locatello(model: str, data: str, **weight: float) -> Row:
    """Locatello et al., 2019: disentanglement_lib's unsupervised_study_v1, sweep.py and shared.gin."""
    budget = {"model_latent_dim": 10, "model_lr": 1e-4, "data_batch_size": 64, "trainer_max_steps": 300_000}
    return row(model, data, model_network="LocatelloNetwork()", **ALL, **budget, **weight)


SHAPES, SPRITES, ISAAC = "Shapes3DDataModule", "DSpritesDataModule", "Isaac3DDataModule"
CELEBA, CHAIRS, MNIST, BLOBS = "CelebADataModule", "ChairsDataModule", "MNISTDataModule", "BlobsDataModule"
MASKS = {"data_mask": True, "data_test_models": 0.2, "data_val_size": 0, "data_models_file": None}
TENTH = {
    "data_official_split": False,
    "data_test_size": 0.1,
    "data_crop": 148,
    "data_image_size": 64,
    "model_likelihood": "gaussian",
}
DENSE = (  # ReLU, then three tanh layers
    "DenseNetwork(decoder_activation=tanh, decoder_widths=[1200, 1200, 1200], "
    "encoder_activation=relu, encoder_widths=[1200, 1200])"
)
TANH = (
    "DenseNetwork(decoder_activation=tanh, decoder_widths=[1200, 1200], "
    "encoder_activation=tanh, encoder_widths=[1200, 1200])"
)
LARGE = "JointVAENetwork(variant=released)"
ALL = {"data_val_size": 0, "data_test_size": 0}
TC = {"kl": ("KL", {"beta": 1.0}), "tc": ("TotalCorrelation", {"weight": 5.0})}
BETA = {"kl": ("KL", {"beta": 4.0})}
FACTOR = {"kl": ("KL", {"beta": 1.0}), "tc": ("DiscriminatedTotalCorrelation", {"gamma": 35.0})}
DSPRITES = {
    **{"model_dim_z": 5, "model_dim_u": 1, "model_discrete": [3], "model_lr": 5e-4, "trainer_max_epochs": 30},
    **{"model_patience": 1, "model_cooldown": (2, 4), "model_priors": None, **ALL},
}
WELA = {**ALL, "data_batch_size": 256, "data_jitter": 0.0, "data_samples": 25, "trainer_max_epochs": 150}
SHARES = [[0.42, 0.33, 0.18, 0.07], [0.9, 0.07, 0.03], [0.85, 0.15], [0.74, 0.15, 0.11], [0.93, 0.07], [0.47, 0.53]]
FACES = {
    **{"model_dim_z": 10, "model_dim_u": 1, "model_discrete": [4, 3, 2, 3, 2, 2, 2, 2], "model_lr": 5e-4},
    **{"model_priors": [*SHARES, [0.95, 0.05], [0.57, 0.43]], "trainer_max_epochs": 80, "model_patience": 2},
    **{"data_labels": 800, "data_labelled_set": "first", "data_crop": None, "data_image_size": None},
    **{"model_cooldown": (3, 4), "model_likelihood": "l1"},
}
DIGITS = {
    **{"model_dim_z": 6, "model_dim_u": 10, "model_discrete": [10], "model_lr": 1.5e-3, "trainer_max_epochs": 60},
    **{"data_labels": 256, "data_labelled_set": "first", "data_val_size": 0, "data_image_size": 32},
    **{"model_patience": 2, "model_cooldown": (3, 4), "model_priors": None},
}
SMALL = {"data_val_size": 0, "data_image_size": 32}
WITH_TC = {"model_regularizers": {"tc": ("TotalCorrelation", {"latent": "z", "weight": 0.005})}}
TC_ZU = {"model_regularizers": {"tc": ("TotalCorrelation", {"latent": ["z", "u"], "weight": 5.0})}}

CONSTANTS = {
    "jointvae_mnist": joint(MNIST, 10, 30, (5, 5), 25_000, 5e-4, **SMALL),
    "jointvae_tc_mnist": joint(MNIST, 10, 30, (5, 5), 25_000, 5e-4, **SMALL, **WITH_TC),
    "jointvae_fashionmnist": joint("FashionMNISTDataModule", 10, 100, (5, 10), 50_000, 5e-4, **SMALL),
    "jointvae_chairs": joint(
        CHAIRS, 32, 300, (30, 5), 100_000, 1e-4, data_mask=False, data_val_size=0, data_test_models=1
    ),
    "jointvae_celeba": joint(
        CELEBA, 32, 100, (50, 10), 100_000, 5e-4, data_crop=None, data_official_split=False, data_image_size=64, **ALL
    ),
    "jointvae_dsprites": joint(SPRITES, 6, 150, (40, 1.1), 300_000, 5e-4, model_discrete=[3], trainer_max_epochs=30),
    "jointvae_mnist_tuned": row(
        "JointVAE", MNIST, model_continuous=10, model_discrete=[10], model_gamma_c=0.0, **SMALL
    ),
    "betavae_mnist": row("BetaVAE", MNIST, model_latent_dim=10, model_network=LARGE, trainer_max_epochs=100, **SMALL),
    "partedvae_mnist": parted(MNIST, (15, 15, 30, 30, 0.15), (7, 7), 100_000, **DIGITS),
    "partedvae_dsprites": parted(
        SPRITES,
        (50, 100, 10, 10, 0.1),
        (30, 5),
        300_000,
        **DSPRITES,
        data_labels=10_000,
        data_labelled_factors=["shape"],
        data_label_form="index",
        data_balance="halves",
    ),
    "partedvae_dsprites_unsupervised": parted(
        SPRITES, (50, 100, 10, 10, 0.1), (30, 5), 300_000, **DSPRITES, data_labels=None
    ),
    "partedvae_tc_dsprites": parted(
        SPRITES, (50, 100, 10, 10, 0.1), (30, 5), 300_000, **DSPRITES, data_labels=None, **TC_ZU
    ),
    "partedvae_celeba": parted("CelebAClassesDataModule", (1000, 2000, 10, 500, 0.2), (30, 15), 125_000, **FACES),
    "betavae_dsprites": kumar("BetaVAE", SPRITES, 10, 400, DENSE, model_beta=4.0),
    "dipvae1_dsprites": kumar(
        "DIPVAE",
        SPRITES,
        10,
        400,
        DENSE,
        model_variant="i",
        model_lambda_od=10.0,
        model_lambda_d=100.0,
        model_lambda_3=0.0,
    ),
    "dipvae1_capacity_dsprites": kumar(
        "DIPVAE", SPRITES, 10, 400, DENSE, model_variant="i", model_lambda_od=10.0, model_lambda_d=100.0
    ),
    "dipvae2_dsprites": kumar(
        "DIPVAE",
        SPRITES,
        10,
        400,
        DENSE,
        model_variant="ii",
        model_lambda_od=5.0,
        model_lambda_d=5.0,
        model_lambda_3=200.0,
    ),
    "betavae_celeba": kumar("BetaVAE", CELEBA, 32, 100, LARGE, model_beta=4.0, **TENTH),
    "dipvae1_celeba": kumar(
        "DIPVAE", CELEBA, 32, 100, LARGE, model_variant="i", model_lambda_od=2.0, model_lambda_d=100.0, **TENTH
    ),
    "dipvae2_celeba": kumar(
        "DIPVAE",
        CELEBA,
        32,
        100,
        LARGE,
        model_variant="ii",
        model_lambda_od=1.0,
        model_lambda_d=0.5,
        model_lambda_3=0.0,
        **TENTH,
    ),
    "dipvae1_chairs": kumar(
        "DIPVAE", CHAIRS, 32, 100, LARGE, model_variant="i", model_lambda_od=10.0, model_lambda_d=100.0, **MASKS
    ),
    "betavae_chairs": kumar("BetaVAE", CHAIRS, 32, 100, LARGE, model_beta=40.0, **MASKS),
    "vae_chairs": row(
        "VAE",
        CHAIRS,
        model_latents={"z": ("GaussianLatent", {"dim": 32})},
        model_network=LARGE,
        data_batch_size=100,
        **MASKS,
    ),
    "welavae_blobs": row(
        "WeLaVAE",
        BLOBS,
        model_latent_dim=2,
        model_beta=40.0,
        model_gamma=None,
        model_lr=1e-4,
        model_network=TANH,
        **WELA,
    ),
    "tcvae_blobs": row("TCVAE", BLOBS, model_latent_dim=5, model_beta=40.0, model_lr=1e-4, model_network=TANH, **WELA),
    "larvae_3dshapes": nie(SHAPES, 1.0, 4800, TC),
    "larvae_dsprites": nie(SPRITES, 1.0, 7373, TC),
    "larvae_isaac3d": nie(ISAAC, 1.0, 7373, TC),
    "larvae_images": row(
        "LaRVAE",
        "ImageFolderDataModule",
        model_nuisance_dim=5,
        model_tau=1.0,
        model_alpha=100.0,
        model_lr=1e-4,
        data_labels=1.0,
        data_batch_size=32,
        data_image_size=64,
        trainer_max_epochs=200,
    ),
    "larvae_celeba": nie(CELEBA, 0.05, 2026, TC),
    **{
        f"ss_{name}_{place}": nie(data, 0.0, labels, terms)
        for name, terms in (("betavae", BETA), ("tcvae", TC), ("factorvae", FACTOR))
        for place, data, labels in (("3dshapes", SHAPES, 4800), ("dsprites", SPRITES, 7373), ("isaac3d", ISAAC, 7373))
    },
    "factorvae_3dshapes": row("FactorVAE", SHAPES, model_latent_dim=11, model_gamma=35.0, model_lr=1e-4),
    "factorvae_dsprites": row("FactorVAE", SPRITES, model_latent_dim=10, model_gamma=35.0, model_lr=1e-4),
    "tcvae_3dshapes": row("TCVAE", SHAPES, model_latent_dim=11, model_beta=6.0, model_lr=1e-4),
    "tcvae_dsprites": row("TCVAE", SPRITES, model_beta=5.0, model_network=LARGE),
    "annealedvae_3dshapes": row("AnnealedVAE", SHAPES, model_gamma=1000.0, model_max_nats=25.0, model_steps=100_000),
    "annealedvae_dsprites": row(
        "AnnealedVAE",
        SPRITES,
        model_gamma=1000.0,
        model_max_nats=25.0,
        model_steps=100_000,
        model_latent_dim=10,
        model_lr=5e-4,
        model_network="BurgessNetwork()",
    ),
    **{
        f"{name}_{data.removesuffix('DataModule').lower()}": locatello(model, data, **weight)
        for name, model, weight in (
            ("betavae", "BetaVAE", {"model_beta": 4.0}),
            ("tcvae", "TCVAE", {"model_beta": 6.0}),
            ("factorvae", "FactorVAE", {"model_gamma": 30.0, "model_discriminator_lr": 1e-4}),
        )
        for data in ("MPI3DDataModule", "Cars3DDataModule", "SmallNORBDataModule", "Falcor3DDataModule")
    },
    "betavae_3dshapes": row("BetaVAE", SHAPES, model_beta=4.0),
    "vae_3dshapes": row("VAE", SHAPES, model_latents={"z": ("GaussianLatent", {"dim": 10})}),
}


def test_every_experiment_has_its_constants() -> None:
    assert CONSTANTS.keys() == {path.stem for path in (ROOT / "experiments").glob("*.yaml")}


@pytest.mark.parametrize("name", CONSTANTS)
def test_an_experiment_resolves_to_the_papers_constants(name: str) -> None:
    found = parsed(ROOT / "experiments" / f"{name}.yaml").as_dict()
    sections = {"model": found["model"]["init_args"], "data": found["data"]["init_args"], "trainer": found["trainer"]}
    for key, expected in CONSTANTS[name].items():
        section, _, option = key.partition("_")
        if not option:
            assert short(found[section]["class_path"]) == expected
            continue
        value = sections[section].get(option)
        assert (spelt(value) if option == "network" else parts(value, expected)) == expected, key


def short(class_path: str) -> str:
    return class_path.rpartition(".")[2]


def spelt(network: Any) -> Any:
    """A network as its constructor is called; None stands for the model's own."""
    if network is None:
        return None
    arguments = ", ".join(f"{name}={value}" for name, value in sorted(network.get("init_args", {}).items()))
    return f"{short(network['class_path'])}({arguments})"


def parts(value: Any, expected: Any) -> Any:
    """Named objects as their class and those of their arguments that are expected."""
    if not isinstance(expected, dict):
        return value
    found = {}
    for name, part in (value or {}).items():
        wanted = expected.get(name, ("", {}))[1]
        found[name] = short(part["class_path"]), {key: part.get("init_args", {}).get(key) for key in wanted}
    return found
