"""Load the weights that JointVAE's author released."""

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


def released_arguments(specs: Path, weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """`JointVAE` arguments from a released `specs.json` and its weights.

    Args:
        specs: The JSON file: "latent_spec", and a capacity [from, to, steps, gamma] for each kind of latent.
        weights: The weights; they determine the number of channels and the image size.
    """
    try:
        fields = json.loads(specs.read_text())
        first_z, max_z, steps, gamma_z = fields["cont_capacity"]
        first_c, max_c, steps_c, gamma_c = fields["disc_capacity"]
        if first_z or first_c or steps != steps_c:
            raise ValueError("its capacities do not rise from 0 in equally many steps")
        convolutions = sum(name.startswith("img_to_features.") for name in weights) // 2
        side = 4 << convolutions  # every one halves the image, down to 4×4
        return {
            "image_shape": (weights["img_to_features.0.weight"].shape[1], side, side),
            "continuous": fields["latent_spec"]["cont"],
            "discrete": fields["latent_spec"]["disc"],
            "gamma_z": gamma_z,
            "gamma_c": gamma_c,
            "max_nats_z": max_z,
            "max_nats_c": max_c,
            "steps": steps,
            "lr": fields["lr"][-1],
        }
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{specs} is not the specs.json of released JointVAE weights ({error!r})") from error


def read_released(path: Path) -> dict[str, Tensor]:
    """Released weights by name. Loads tensors only; nothing in the file is executed."""
    try:
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} holds more than tensors and nothing in it was executed: give the author's model.pt"
        ) from error
    except (EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}): fetch the author's model.pt again") from error
    if not isinstance(weights, dict) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise ValueError(f"{path} is not a dictionary of tensors: give the author's model.pt")
    return weights


def copy_released(weights: Mapping[str, Tensor], model: nn.Module) -> None:
    """Copy released weights into a `JointVAE`, whose parameters are in the same order.

    Our heads merge the released ones: means and log-variances in one layer, the classes of all variables in another.
    """

    def layers(*parts: str) -> list[Tensor]:
        return [value for part in parts for name, value in weights.items() if name.startswith(part)]

    def joined(*parts: str) -> list[Tensor]:
        values = layers(*parts)
        return [torch.cat(values[::2]), torch.cat(values[1::2])]  # weights, biases

    ours = [name for name, _ in model.named_parameters()]
    theirs = [
        *layers("img_to_features.", "features_to_hidden."),
        *joined("fc_mean.", "fc_log_var."),
        *joined("fc_alphas."),
        *layers("latent_to_features.", "features_to_img."),
    ]
    model.load_state_dict(dict(zip(ours, theirs, strict=True)), strict=False)  # the step is no weight
