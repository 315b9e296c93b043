"""Short runs of the command line."""

from pathlib import Path

from tests.helpers.toy import ToyDataModule

SHORT = ["--trainer.max_steps=2", "--trainer.limit_val_batches=1", "--trainer.num_sanity_val_steps=0"]


def the_run(experiment: str) -> Path:
    (folder,) = (Path("runs") / experiment).iterdir()
    return folder


class SmallDataModule(ToyDataModule):
    """The toy with an argument that the command line sees."""

    def __init__(self, test_size: int = 10) -> None:
        super().__init__(test_size=test_size)


SMALL = "--data=tests.helpers.commands.SmallDataModule"
NETWORK = '--model.network={"class_path": "DenseNetwork", "init_args": {"encoder_widths": [8], "decoder_widths": [8]}}'
MODELS = {
    "beta": ["--model=BetaVAE", "--model.latent_dim=3"],
    "joint": ["--model=JointVAE", "--model.continuous=2", "--model.discrete=[4]"],
}
