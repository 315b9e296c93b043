"""The first lines of `vaezoo fit`: what runs, on what, and where it goes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from datamodules import ImageDataModule
from vaezoo.callbacks import Compile
from vaezoo.models import VAE


class Opening(Callback):
    """Says what runs once the data is set up and `Compile` has chosen, on the first rank alone.

    Args:
        run_dir: Folder of the run.
        data: Its data.
        seed: Its seed.
    """

    def __init__(self, run_dir: Path, data: ImageDataModule, seed: object) -> None:
        self.run_dir, self.data, self.seed = run_dir, data, seed

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Print a line each for model, network, data, labels, device and folder."""
        if not trainer.is_global_zero or not isinstance(pl_module, VAE):
            return
        host = torch.cpu.get_capabilities() if trainer.strategy.root_device.type == "cpu" else None
        precision = describe_precision(str(trainer.precision), host)
        lines = {
            "model": f"{type(pl_module).__name__} ({pl_module.paper}), {_parameters(pl_module)} parameters",
            "network": pl_module.network.built(pl_module.image_shape),
            "data": describe_data(self.data),
            "labels": describe_labels(self.data),
            "device": f"{_device(trainer)}, {precision}, {_compiled(trainer)}, seed {self.seed}",
            "run": self.run_dir,
        }
        print("\n".join(f"{name + ':':9}{text}" for name, text in lines.items()), flush=True)


def describe_data(data: ImageDataModule) -> str:
    """The data, where its pictures come from, and how many there are."""
    source = {"render": "drawn here", "file": f"files in {data.data_dir}"}[data.source]
    counts = f"{len(data.train_ids):,} training, {len(data.val_ids):,} validation, {len(data.test_ids):,} test images"
    return f"{type(data).__name__.removesuffix('DataModule')} ({source}), {counts}"


def describe_labels(data: ImageDataModule) -> str:
    """How many training images have labels, and of what."""
    if not len(data.labelled_ids):
        return "none"
    names = ", ".join(factor.name for factor in data.labelled_factors)
    return f"{len(data.labelled_ids):,} of {len(data.train_ids):,} training images ({data.label_form} of {names})"


def describe_precision(precision: str, host: Mapping[str, Any] | None) -> str:
    """The precision, and a remark where processors without instructions for bfloat16 are slowed by it.

    Args:
        precision: Lightning's name of it.
        host: What the processor can do, by `torch.cpu.get_capabilities`; None if a GPU trains.
    """
    slow = precision.startswith("bf16") and host is not None and not any(host[name] for name in host if "bf16" in name)
    return precision + " (32-true is faster on this processor)" if slow else precision


def _parameters(model: VAE) -> str:
    count = sum(parameter.numel() for parameter in model.parameters())
    return f"{count / 1e6:.1f} M" if count >= 1e5 else f"{count:,}"


def _device(trainer: Trainer) -> str:
    device = trainer.strategy.root_device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return f"{trainer.world_size} × {name}" if trainer.world_size > 1 else name


def _compiled(trainer: Trainer) -> str:
    callbacks = trainer.callbacks  # type: ignore[attr-defined]  # Lightning sets them from elsewhere
    chosen = any(isinstance(callback, Compile) and callback.compiled for callback in callbacks)
    return "compiled" if chosen else "not compiled"
