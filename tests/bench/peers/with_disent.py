"""One training with disent's frameworks and Lightning's Trainer as it is by default: log, progress bar, checkpoint."""

from typing import Any

from disent.dataset import DisentDataset
from disent.dataset.data import ArrayDataset
from disent.dataset.sampling import SingleSampler
from disent.dataset.transform import ToImgTensorF32
from disent.frameworks.vae import BetaTcVae, BetaVae, DipVae, Vae
from disent.model import AutoEncoder, DisentDecoder, DisentEncoder
from lightning.pytorch import Callback, Trainer
from torch import Tensor
from torch.utils.data import DataLoader

from tests.bench.peers.workload import LR, Size, Task, clock, decoder, encoder


class Encoder(DisentEncoder):  # type: ignore[misc]
    def __init__(self, size: Size) -> None:
        super().__init__(x_shape=size.shape, z_size=size.latents, z_multiplier=2)
        self.layers = encoder(size)

    def encode(self, x: Tensor) -> Any:
        return self.layers(x)


class Decoder(DisentDecoder):  # type: ignore[misc]
    def __init__(self, size: Size) -> None:
        super().__init__(x_shape=size.shape, z_size=size.latents)
        self.layers = decoder(size)

    def decode(self, z: Tensor) -> Any:
        return self.layers(z)


class Tick(Callback):
    def on_train_batch_end(self, *args: Any) -> None:
        clock.tick()


def a_model(method: str, size: Size) -> Vae:
    """What disent calls the method."""
    methods: dict[str, tuple[Any, dict[str, Any]]] = {
        "BetaVAE": (BetaVae, {"beta": 4.0}),
        "TCVAE": (BetaTcVae, {"beta": 6.0}),
        "DIPVAE": (DipVae, {"beta": 1.0, "dip_mode": "i", "lambda_od": 10.0, "lambda_d": 100.0}),
    }
    model, weights = methods[method]
    common = {"optimizer_kwargs": {"lr": LR}, "recon_loss": "bce", "loss_reduction": "mean_sum"}
    return model(AutoEncoder(Encoder(size), Decoder(size)), cfg=model.cfg(**common, **weights))


def main() -> None:
    """Train, or load, and report."""
    task = Task.parse()
    pictures = ArrayDataset(task.load()[..., None])
    data = DisentDataset(pictures, sampler=SingleSampler(), transform=ToImgTensorF32())
    batches: DataLoader[Any] = DataLoader(data, task.size.batch, shuffle=True)
    if task.work == "loader":
        for _ in batches:
            clock.tick()
    else:
        Trainer(max_epochs=1, accelerator="cpu", callbacks=[Tick()]).fit(a_model(task.method, task.size), batches)
    clock.report(task)


if __name__ == "__main__":
    main()
