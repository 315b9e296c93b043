"""Random runs of the command line, small enough to last a second."""

from random import Random

from tests.helpers.toy import ToyDataModule

SUPERVISED = ("--data.labels=24", "--data.labelled_batch_size=4")
MODELS: dict[str, tuple[str, ...]] = {
    "VAE": (),
    "BetaVAE": ("--model.latent_dim=3",),
    "AnnealedVAE": ("--model.latent_dim=3", "--model.steps=20", "--model.max_nats=3"),
    "TCVAE": ("--model.latent_dim=3",),
    "FactorVAE": ("--model.latent_dim=3", "--model.discriminator_width=8"),
    "DIPVAE": ("--model.latent_dim=3", "--model.variant=ii"),
    "JointVAE": ("--model.continuous=2", "--model.discrete=[4]", "--model.steps=20"),
    "LaRVAE": ("--model.nuisance_dim=2", *SUPERVISED),
    "WeLaVAE": ("--model.latent_dim=2", "--data.label_form=onehot", *SUPERVISED),
    "PartedVAE": (
        *("--model.dim_z=2", "--model.dim_u=1", "--model.discrete=[4]", "--model.steps=20"),
        *("--data.label_form=index", "--data.labelled_factors=[shape]", *SUPERVISED),
    ),
}
"""Arguments of each model, and of the data that it needs."""

NETWORK = '{"class_path": "DenseNetwork", "init_args": {"encoder_widths": [8], "decoder_widths": [8]}}'
FIXED = (
    *("--ckpt_path=last", "--experiment=exp", f"--model.network={NETWORK}", "--data=tests.torture.settings.Toy"),
    *("--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false"),
    *("--trainer.limit_val_batches=2", "--trainer.num_sanity_val_steps=0", "--trainer.log_every_n_steps=1"),
)
BY_HAND = ("PartedVAE",)  # optimized by hand, where Lightning accumulates and clips nothing


class Toy(ToyDataModule):
    """The toy with arguments that the command line sees."""

    def __init__(
        self,
        batch_size: int = 8,
        labels: int | None = None,
        labelled_batch_size: int = 4,
        label_form: str = "rank",
        labelled_factors: list[str] | None = None,
        num_workers: int = 0,
    ) -> None:
        super().__init__(
            batch_size=batch_size,
            labels=labels,
            labelled_batch_size=labelled_batch_size,
            label_form=label_form,
            labelled_factors=labelled_factors,
            num_workers=num_workers,
        )


def command(chance: Random, model: str) -> list[str]:
    """Arguments of a random `vaezoo fit` of a model."""
    args = ["fit", f"--model={model}", *FIXED, *MODELS[model], f"--seed_everything={chance.randrange(1000)}"]
    args.append(f"--data.batch_size={chance.choice((8, 12, 16))}")
    if chance.random() < 0.15:
        args.append("--data.num_workers=1")
    limit = chance.choice((None, None, 5, 0.7))
    args += [] if limit is None else [f"--trainer.limit_train_batches={limit}"]
    args.append(f"--trainer.val_check_interval={chance.choice((1.0, 2, 3, 5, 7))}")
    args.append(f"--trainer.precision={chance.choice(('32-true', '32-true', 'bf16-mixed'))}")
    epochs = chance.random() < 0.3
    args.append("--trainer.max_epochs=4" if epochs else f"--trainer.max_steps={chance.randint(15, 30)}")
    return [*args, *_callbacks(chance, model in BY_HAND)]


def _callbacks(chance: Random, by_hand: bool) -> list[str]:
    every = chance.choice((1, 2, 3, 5))
    args = [
        *("--trainer.callbacks+=LastCheckpoint", f"--trainer.callbacks.every_n_train_steps={every}"),
        f"--trainer.callbacks.every_n_minutes={chance.choice((0.0005, 5))}",
    ]
    if not by_hand:
        args += chance.choice(
            (
                [],
                ["--trainer.accumulate_grad_batches=2"],
                ["--trainer.gradient_clip_val=0.5"],
                ["--trainer.callbacks+=GradientAccumulationScheduler", "--trainer.callbacks.scheduling={1: 2, 3: 3}"],
            )
        )
    others = {
        "EMAWeightAveraging": ("use_buffers=false", "decay=0.8"),
        "EvaluateDisentanglement": ("images=20",),
        "EarlyStopping": ("monitor=val/loss", "patience=2"),
        "AddRegularizer": ("name=more", "regularizer=KL"),
        "GuardFinite": ("action=skip",),
        "SavePictures": (),
    }
    for name, options in others.items():
        if chance.random() < 0.2:
            args += [f"--trainer.callbacks+={name}", *(f"--trainer.callbacks.{option}" for option in options)]
    return args
