"""One training with `vaezoo fit` and all that the command adds: log, progress bar, guard and checkpoints."""

from typing import Any

from lightning.pytorch import LightningModule

from datamodules import ArrayDataModule
from tests.bench.data import through
from tests.bench.peers.workload import LR, TINY, Task, clock
from vaezoo.__main__ import main as vaezoo
from vaezoo.models import DIPVAE, TCVAE, BetaVAE, FactorVAE


class Ticking(LightningModule):
    """A callback would read, and so let the model log, what every step has to say."""

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Look at the clock."""
        super().on_train_batch_end(outputs, batch, batch_idx)
        clock.tick()


class TickingBetaVAE(Ticking, BetaVAE):
    """β-VAE with a clock."""


class TickingTCVAE(Ticking, TCVAE):
    """β-TCVAE with a clock."""


class TickingFactorVAE(Ticking, FactorVAE):
    """FactorVAE with a clock."""


class TickingDIPVAE(Ticking, DIPVAE):
    """DIP-VAE with a clock."""


def command(task: Task) -> list[str]:
    """What a user would type."""
    network = '{"class_path": "BurgessNetwork"}'
    if task.size == TINY:
        network = '{"class_path": "DenseNetwork", "init_args": {"encoder_widths": [8], "decoder_widths": [8]}}'
    return [
        "fit",
        f"--model=tests.bench.peers.with_vaezoo.Ticking{task.method}",
        f"--model.latent_dim={task.size.latents}",
        f"--model.network={network}",
        f"--model.lr={LR}",
        "--data=ArrayDataModule",
        f"--data.file={task.images.name}",
        f"--data.data_dir={task.images.parent}",
        f"--data.batch_size={task.size.batch}",
        "--data.val_size=0",
        "--data.test_size=0",
        f"--trainer.max_steps={task.warm + task.steps}",
        "--trainer.accelerator=cpu",
        f"--compile={str(task.compiled).lower()}",
    ]


def main() -> None:
    """Train, or load, and report."""
    task = Task.parse()
    if task.work == "loader":
        where = {"file": task.images.name, "data_dir": task.images.parent}
        load = through(ArrayDataModule(**where, batch_size=task.size.batch, val_size=0, test_size=0))
        for _ in range(task.warm + task.steps):
            load()
            clock.tick()
    elif code := vaezoo(command(task)):
        raise RuntimeError(f"vaezoo fit ended with {code}")
    clock.report(task)


if __name__ == "__main__":
    main()
