"""Runs named by what differs."""

from vaezoo.runs.labels import run_labels, settings_label, short_keys

BETA, SEED, MODEL = "model.init_args.beta", "seed_everything", "model.class_path"


def labels(*settings: dict[str, str]) -> list[str]:
    return run_labels(settings, [f"run{i}" for i in range(len(settings))])


def test_runs_are_named_by_the_settings_in_which_they_differ() -> None:
    assert labels({BETA: "4.0", SEED: "0"}, {BETA: "16.0", SEED: "0"}, {BETA: "16.0", SEED: "1"}) == [
        "β = 4",
        "β = 16, seed 0",
        "β = 16, seed 1",
    ]


def test_where_and_how_a_run_was_started_is_no_difference() -> None:
    first = {BETA: "4.0", "ckpt_path": "null", "data.init_args.num_workers": "0", "trainer.logger.class_path": "a.B"}
    second = {BETA: "8.0", "ckpt_path": "a.ckpt", "data.init_args.num_workers": "2", "runs_dir": "b"}
    assert labels(first, second) == ["β = 4", "β = 8"]
    assert labels(first, first | second | {BETA: "4.0"}) == ["run0", "run1"]


def test_models_and_data_are_called_by_their_names() -> None:
    first = {MODEL: "vaezoo.BetaVAE", BETA: "4.0", "data.class_path": "datamodules.BlobsDataModule"}
    second = {MODEL: "vaezoo.TCVAE", BETA: "6.0", "data.class_path": "datamodules.BlobsDataModule"}
    third = {MODEL: "vaezoo.TCVAE", BETA: "6.0", "data.class_path": "datamodules.MNISTDataModule"}
    assert labels(first, second, third) == ["BetaVAE", "TCVAE, Blobs", "TCVAE, MNIST"]


def test_the_models_own_arguments_come_before_those_of_the_trainer() -> None:
    assert labels({"trainer.max_steps": "1", BETA: "1"}, {"trainer.max_steps": "2", BETA: "2"}) == ["β = 1", "β = 2"]


def test_a_name_wins_and_runs_that_share_one_are_told_apart() -> None:
    named = {"name": "mine", BETA: "4"}
    assert labels(named, {"name": "null", BETA: "4"}, {BETA: "8"}) == ["mine", "β = 4", "β = 8"]
    assert labels(named, named | {SEED: "1"}, named | {SEED: "2"})[1:] == ["mine, seed 1", "mine, seed 2"]
    assert labels(named, named) == ["mine, run0", "mine, run1"]
    assert (labels(named), labels({BETA: "4"})) == (["mine"], ["run0"])


def test_names_are_as_long_as_they_must_be() -> None:
    terms = "model.init_args.regularizers"
    keys = [f"{terms}.capacity_z.init_args.gamma", f"{terms}.capacity_c.init_args.gamma", "model.init_args.lambda_od"]
    assert list(short_keys(keys).values()) == ["capacity_z.γ", "capacity_c.γ", "λ_od"]
    network = "model.init_args.network.class_path"
    assert settings_label({network: "vaezoo.DenseNetwork"}) == "network = DenseNetwork"
    assert settings_label({"config": "tc", "tau": "1.0", "labels": "", "seed": "2"}) == "tc, τ = 1, seed 2"
    assert settings_label({"labels": "null", "z": "x" * 50}) == f"labels = none, z = {'x' * 40}…"


def test_a_name_cannot_forge_lines() -> None:
    assert labels({"name": "a\nb\x1b[2J"}) == ["a b\\x1b[2J"]
