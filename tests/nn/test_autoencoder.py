"""The autoencoder on its own: all that a trained model is used for, without Lightning."""

import subprocess
import sys

import pytest
import torch

from tests.helpers.zoo import MODELS, NETWORK, SHAPE, a_batch
from vaezoo import Autoencoder, ConcreteLatent, GaussianLatent
from vaezoo.models.base import VAE

USE = """
import sys, torch
from vaezoo import Autoencoder, ConcreteLatent, DenseNetwork, GaussianLatent
model = Autoencoder((1, 16, 16), {"z": GaussianLatent(4), "c": ConcreteLatent([3])}, DenseNetwork((8,), (8,))).eval()
x = torch.rand(2, 1, 16, 16)
assert model.represent(x).shape == (2, 7)
assert model.reconstruct(x).shape == model.sample(2).shape == x.shape
assert len(model.traverse(x, "c")) == 1
model.load_state_dict(model.state_dict())
assert isinstance(model, torch.nn.Module)
print([name for name in sys.modules if name.partition(".")[0] in ("lightning", "pytorch_lightning", "torchmetrics")])
"""


def test_it_is_used_without_importing_lightning() -> None:
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


@pytest.mark.parametrize("name", ["VAE", "VAE with discrete latents", "BetaVAE"])
def test_a_trained_model_s_weights_go_into_an_autoencoder(name: str) -> None:
    model, x = MODELS[name]().eval(), a_batch(3).x
    parts = {
        key: value for key, value in model.state_dict().items() if key.partition(".")[0] not in ("step", "regularizers")
    }
    alone = Autoencoder(SHAPE, model.latents, NETWORK).eval()
    alone.load_state_dict(parts)
    assert torch.equal(alone.represent(x), model.represent(x))
    assert torch.equal(alone.reconstruct(x), model.reconstruct(x))


def test_only_decoded_latents_are_part_of_a_code() -> None:
    latents = {"c": ConcreteLatent([3], decoded=False), "z": GaussianLatent(4)}
    model = Autoencoder(SHAPE, latents, NETWORK)
    assert list(model.decoded) == model.walkable() == ["z"]
    assert model.represent(a_batch(2).x).shape == (2, 4)
    with pytest.raises(ValueError, match="no latents to read"):
        VAE(SHAPE, {"c": ConcreteLatent([3], decoded=False)}, network=NETWORK)


@pytest.mark.parametrize("name", MODELS)
def test_images_of_another_shape_are_refused_in_our_words(name: str) -> None:
    model, (channels, height, width) = MODELS[name]().eval(), SHAPE
    for method in (model.encode, model.represent, model.reconstruct, model.unit_nats):
        with pytest.raises(ValueError, match=r"images are .*, the model's image_shape \(channels, height, width\) is"):
            method(torch.rand(2, channels + 1, height, width))
    with pytest.raises(ValueError, match=r"a single image needs a batch dimension, x\[None\]"):
        model.represent(torch.rand(SHAPE))
    with pytest.raises(ValueError, match="the model reads floats"):
        model.represent(torch.zeros(2, *SHAPE, dtype=torch.uint8))


@pytest.mark.parametrize("name", MODELS)
def test_latents_of_another_size_are_refused_in_our_words(name: str) -> None:
    model = MODELS[name]().eval()
    latents, (first, *_) = model.draw(2), model.decoded
    with pytest.raises(ValueError, match=rf"latents '{first}' are \(2, \d+\), the model's are \(B, \d+\)"):
        model.decode(latents | {first: torch.rand(2, 99)})
    with pytest.raises(ValueError, match=f"latents '{first}' are missing"):
        model.decode({key: value for key, value in latents.items() if key != first})
    with pytest.raises(ValueError, match=r"units \[99\]: latent '\w+' has units 0 to"):
        model.traverse(units=[99])
