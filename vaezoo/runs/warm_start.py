"""Start a new run from a checkpoint's weights, as far as they fit."""

from collections.abc import Collection

import torch

from vaezoo.models.base import VAE
from vaezoo.runs.checkpoint_io import OpenCheckpoint

MOST_NAMES = 5  # of modules in a line


def load_weights(model: VAE, checkpoint: OpenCheckpoint) -> list[str]:
    """Copy weights with matching name and shape; steps and other state stay unchanged.

    Returns:
        What was and was not loaded, in a line or two.

    Raises:
        ValueError: Nothing fits.
    """
    given = {name: value for name, value in checkpoint.content["state_dict"].items() if torch.is_tensor(value)}
    own = dict(model.named_parameters())
    fitting = [name for name, weight in own.items() if name in given and given[name].shape == weight.shape]
    if not fitting:
        raise ValueError(
            f"no weight in {checkpoint.path} has the name and shape of one of {type(model).__name__}'s: give a "
            "checkpoint of a model with the same network"
        )
    with torch.no_grad():
        for name in fitting:
            own[name].copy_(given[name])
    weights = {name: weight.numel() for name, weight in own.items()}
    share = sum(weights[name] for name in fitting) / sum(weights.values())
    lines = [f"init_from {checkpoint.path}: loaded {len(fitting)} of {len(own)} tensors, {share:.0%} of the weights"]
    left = {
        "of another shape": [name for name in own if name in given and name not in fitting],
        "not in the checkpoint": [name for name in own if name not in given],
        "not in the model": [name for name in given if name not in own and name not in dict(model.named_buffers())],
    }
    if any(left.values()):
        lines.append(f"not loaded: {'; '.join(f'{why}: {_modules(names)}' for why, names in left.items() if names)}")
    return lines


def require_loaded_encoder(model: VAE, checkpoint: OpenCheckpoint) -> None:
    """Refuse to freeze an encoder unless all its weights come from a checkpoint."""
    given = checkpoint.content["state_dict"]
    for name, weight in model.encoder.named_parameters(prefix="encoder"):
        if name not in given or given[name].shape != weight.shape:
            raise ValueError(
                f"freeze_encoder: {name} of the encoder is not in {checkpoint.path}, or has another shape there, so "
                "the encoder would stay untrained: give a checkpoint whose encoder fits, or leave freeze_encoder out"
            )


def _modules(names: Collection[str]) -> str:
    modules = list(dict.fromkeys(name.rpartition(".")[0] for name in names))
    more = len(modules) - MOST_NAMES
    return ", ".join(modules[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
