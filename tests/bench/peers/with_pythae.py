"""One training with pythae's pipeline, which adds a progress bar and saves the model at the end."""

from typing import Any

from pythae.data.datasets import BaseDataset
from pythae.models import VAE, BetaTCVAE, BetaTCVAEConfig, BetaVAE, BetaVAEConfig, FactorVAE, FactorVAEConfig
from pythae.models.base.base_utils import ModelOutput
from pythae.models.nn import BaseDecoder, BaseEncoder
from pythae.pipelines import TrainingPipeline
from pythae.trainers import AdversarialTrainerConfig, BaseTrainer, BaseTrainerConfig
from pythae.trainers.training_callbacks import TrainingCallback
from torch import Tensor, nn

from tests.bench.peers.workload import LR, Size, Task, clock, decoder, encoder, floats


class Encoder(BaseEncoder):  # type: ignore[misc]
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.layers, self.latent_dim = encoder(size), size.latents

    def forward(self, x: Tensor) -> ModelOutput:
        mu, logvar = self.layers(x).chunk(2, dim=1)
        return ModelOutput(embedding=mu, log_covariance=logvar)


class Decoder(BaseDecoder):  # type: ignore[misc]
    def __init__(self, size: Size) -> None:
        super().__init__()
        self.layers = nn.Sequential(*decoder(size), nn.Sigmoid())

    def forward(self, z: Tensor) -> ModelOutput:
        return ModelOutput(reconstruction=self.layers(z))


class Tick(TrainingCallback):  # type: ignore[misc]
    def on_train_step_end(self, training_config: Any, **kwargs: Any) -> None:
        clock.tick()


def a_model(method: str, size: Size) -> VAE:
    """What pythae calls the method."""
    model, config, weights = {
        "BetaVAE": (BetaVAE, BetaVAEConfig, {"beta": 4.0}),
        "TCVAE": (BetaTCVAE, BetaTCVAEConfig, {"beta": 6.0, "use_mss": False}),
        "FactorVAE": (FactorVAE, FactorVAEConfig, {"gamma": 35.0}),
    }[method]
    settings = config(input_dim=size.shape, latent_dim=size.latents, reconstruction_loss="bce", **weights)
    return model(settings, Encoder(size), Decoder(size))


def settings(method: str, size: Size) -> BaseTrainerConfig:
    """One epoch; FactorVAE has a trainer of its own."""
    common = {"output_dir": "pythae", "num_epochs": 1, "per_device_train_batch_size": size.batch}
    if method == "FactorVAE":
        return AdversarialTrainerConfig(**common, autoencoder_learning_rate=LR, discriminator_learning_rate=1e-4)
    return BaseTrainerConfig(**common, learning_rate=LR)


def main() -> None:
    """Train, or load, and report."""
    task = Task.parse()
    images, model, config = floats(task.load()), a_model(task.method, task.size), settings(task.method, task.size)
    if task.work == "loader":
        for _ in BaseTrainer(model, BaseDataset(images, images[:, 0, 0, 0]), training_config=config).train_loader:
            clock.tick()
    else:
        TrainingPipeline(model, config)(images, callbacks=[Tick()])
    clock.report(task)


if __name__ == "__main__":
    main()
