"""The weights that JointVAE's author released, against their network and loss written out from the raw tensors."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Trainer
from torch import Tensor
from torch.nn.functional import conv2d, conv_transpose2d, linear, logsigmoid, one_hot, relu
from torch.utils.data import DataLoader

import vaezoo
from datamodules import MNISTDataModule
from vaezoo.metrics.functional import cluster_accuracy
from vaezoo.models import JointVAE
from vaezoo.nn.networks import JointVAENetwork
from vaezoo.types import Batch

SHARED = Path(__file__).parents[3] / "shared"
RELEASED = SHARED / "reference" / "jointvae_released"
SETS = ["mnist", "fashion", "chairs", "celeba", "dsprites"]

needs_weights = pytest.mark.skipif(not RELEASED.is_dir(), reason="no released weights beside the project")


def files(name: str) -> tuple[Path, Path]:
    return RELEASED / f"{name}_model.pt", RELEASED / f"{name}_specs.json"


def labelled(x: Tensor) -> Batch:
    return Batch(x, torch.zeros(len(x), 1), torch.ones(len(x), dtype=torch.bool))


def released_loss(weights: dict[str, Tensor], specs: dict[str, Any], x: Tensor) -> float:
    """Encode, take modes, decode and sum up at the end of training, layer by layer and as the papers' facts have it."""

    def layer(name: str) -> tuple[Tensor, Tensor]:
        return weights[f"{name}.weight"], weights[f"{name}.bias"]

    def indices(name: str) -> list[int]:
        return sorted({int(key.split(".")[1]) for key in weights if key.startswith(f"{name}.")})

    h = x
    for i in indices("img_to_features"):
        h = relu(conv2d(h, *layer(f"img_to_features.{i}"), stride=2, padding=1))
    h = relu(linear(h.flatten(1), *layer("features_to_hidden.0")))
    mean, logvar = linear(h, *layer("fc_mean")), linear(h, *layer("fc_log_var"))
    alphas = [linear(h, *layer(f"fc_alphas.{i}")).softmax(1) for i in indices("fc_alphas")]
    h = torch.cat([mean, *(one_hot(alpha.argmax(1), alpha.shape[1]).to(x) for alpha in alphas)], dim=1)
    h = relu(linear(relu(linear(h, *layer("latent_to_features.0"))), *layer("latent_to_features.2"))).view(-1, 64, 4, 4)
    for i in indices("features_to_img"):
        h = conv_transpose2d(relu(h), *layer(f"features_to_img.{i}"), stride=2, padding=1)
    pixels = x.shape[2] * x.shape[3]
    recon = -(x * logsigmoid(h) + (1 - x) * logsigmoid(-h)).mean().item() * pixels
    kl_z = 0.5 * (mean**2 + logvar.exp() - logvar - 1).mean(0).sum().item()
    kl_c = sum(math.log(a.shape[1]) + (a * (a + 1e-12).log()).sum(1).mean().item() for a in alphas)
    _, max_z, _, gamma_z = specs["cont_capacity"]
    _, max_c, _, gamma_c = specs["disc_capacity"]
    capacity_c = min(max_c, sum(math.log(a.shape[1]) for a in alphas))
    return (recon + gamma_z * abs(max_z - kl_z) + gamma_c * abs(capacity_c - kl_c)) / pixels


@needs_weights
@pytest.mark.parametrize("name", SETS)
def test_the_loss_is_the_released_one(name: str) -> None:
    path, specs = files(name)
    model = JointVAE.from_released(path, specs)
    x = torch.rand(3, *model.image_shape, generator=torch.Generator().manual_seed(0))
    weights = {key: value.double() for key, value in torch.load(path, map_location="cpu", weights_only=True).items()}
    expected = released_loss(weights, json.loads(specs.read_text()), x.double())
    with torch.no_grad():
        found = sum(term.loss.item() for term in model.terms(labelled(x)).values())
    assert found == pytest.approx(expected, rel=1e-6)


@needs_weights
def test_the_mnist_weights_find_the_digits_of_the_paper() -> None:
    if not (SHARED / "data" / "MNIST").is_dir():
        pytest.skip("no MNIST files beside the project")
    path, specs = files("mnist")
    model, data = JointVAE.from_released(path, specs), MNISTDataModule(data_dir=SHARED / "data", val_size=0)
    data.setup()
    x = data.pictures.images(data.test_ids).float() / 255
    with torch.no_grad():
        probabilities = torch.cat([model.encode(part)["c"].code() for part in x.split(1000)])
        terms = [model.terms(labelled(part)) for part in x.split(1000)]
        nats = {name: sum(t[f"capacity_{name}"].logs["nats"].item() for t in terms) / 10 for name in "zc"}
    accuracy = cluster_accuracy(probabilities.numpy(), data.factors_of(data.test_ids).numpy())
    assert list(accuracy.values()) == [pytest.approx(0.8873, abs=1e-4)]
    assert nats["z"] == pytest.approx(4.997, abs=5e-4)
    assert nats["c"] == pytest.approx(2.274, abs=5e-4)
    weights = {k: v.double() for k, v in torch.load(path, map_location="cpu", weights_only=True).items()}
    loss = sum(term.loss.item() for term in terms[0].values())
    assert loss == pytest.approx(released_loss(weights, json.loads(specs.read_text()), x[:1000].double()), abs=1e-6)


@needs_weights
@pytest.mark.parametrize("name", SETS)
def test_saved_weights_load_as_any_checkpoint(name: str, tmp_path: Path) -> None:
    model = JointVAE.from_released(*files(name))
    vaezoo.save(model, tmp_path / "released.ckpt")
    again = vaezoo.load(tmp_path / "released.ckpt")
    assert isinstance(again, JointVAE)
    assert again.hparams == model.hparams
    assert again.step == model.step > 0
    x = torch.rand(2, *model.image_shape)
    torch.testing.assert_close(again.reconstruct(x), model.reconstruct(x), rtol=0, atol=0)


def released_like() -> dict[str, Tensor]:
    """Weights named and shaped like the released ones, at random."""
    encoder, decoder = ("img_to_features", "features_to_hidden"), ("latent_to_features", "features_to_img")
    model = JointVAE((1, 32, 32), continuous=3, discrete=[2, 4])
    weights: dict[str, Tensor] = {}
    for parts, module, dense in ((encoder, model.encoder, 1), (decoder, model.decoder, 0)):
        for layer in (layer for layer in module.children() if list(layer.parameters())):
            part = parts[dense] if isinstance(layer, torch.nn.Linear) else parts[1 - dense]
            place = sum(name.startswith(part) for name in weights)  # a weight and a bias, then an activation
            weights |= {f"{part}.{place}.{key}": value for key, value in layer.state_dict().items()}
    for name, size in (("fc_mean", 3), ("fc_log_var", 3), ("fc_alphas.0", 2), ("fc_alphas.1", 4)):
        weights |= {f"{name}.{key}": value for key, value in torch.nn.Linear(256, size).state_dict().items()}
    return weights


SPECS = {
    "cont_capacity": [0.0, 5.0, 100, 30.0],
    "disc_capacity": [0.0, 5.0, 100, 30.0],
    "latent_spec": {"cont": 3, "disc": [2, 4]},
    "lr": [0.0005],
}


def written(folder: Path, weights: Any, specs: Any) -> tuple[Path, Path]:
    torch.save(weights, folder / "model.pt")
    (folder / "specs.json").write_text(json.dumps(specs))
    return folder / "model.pt", folder / "specs.json"


def test_heads_are_joined_in_order(tmp_path: Path) -> None:
    weights = released_like()
    means_last = dict(sorted(weights.items(), key=lambda item: item[0].startswith("fc_mean")))
    model = JointVAE.from_released(*written(tmp_path, means_last, SPECS))
    state, means = model.state_dict(), weights["fc_mean.weight"]
    assert state["heads.z.parameters_of.weight"].equal(torch.cat([means, weights["fc_log_var.weight"]]))
    assert state["heads.c.logits_of.bias"].equal(torch.cat([weights["fc_alphas.0.bias"], weights["fc_alphas.1.bias"]]))
    assert model.step == 100


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("executed",))


@pytest.mark.parametrize(
    ("weights", "specs", "message"),
    [
        ({"a": Evil()}, SPECS, r"model\.pt holds more than tensors and nothing in it was executed"),
        ([1, 2], SPECS, r"model\.pt is not a dictionary of tensors"),
        ({"a": torch.ones(1)}, SPECS, r"specs\.json is not the specs\.json of released .*img_to_features\.0\.weight"),
        (None, {"lr": [1.0]}, r"specs\.json is not the specs\.json of released .*cont_capacity"),
        (None, [], r"specs\.json is not the specs\.json of released"),
        (None, SPECS | {"cont_capacity": [0.0, 5.0, 99, 30.0]}, "do not rise from 0 in equally many steps"),
        (None, SPECS | {"latent_spec": {"cont": 4, "disc": [2, 4]}}, r"model\.pt does not fit the network that .*"),
    ],
    ids=["code", "list", "others", "no capacity", "no object", "steps", "sizes"],
)
def test_other_files_end_in_one_clear_error(
    weights: Any, specs: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=message):
        JointVAE.from_released(*written(tmp_path, weights or released_like(), specs))
    assert "executed" not in capsys.readouterr().out


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path, specs = written(tmp_path, released_like(), SPECS)
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(ValueError, match=r"model\.pt is damaged .*fetch"):
        JointVAE.from_released(path, specs)
    with pytest.raises(FileNotFoundError, match=r"none\.pt"):
        JointVAE.from_released(tmp_path / "none.pt", specs)


def unnamed(path: Path) -> None:
    """Make a checkpoint what version 0.1.0 wrote: the paper's network, which it built without being told."""
    checkpoint = torch.load(path, weights_only=True)
    checkpoint["hyper_parameters"].pop("network")
    torch.save(checkpoint, path)


def test_a_checkpoint_of_0_1_0_loads_and_goes_on_with_its_network(tmp_path: Path) -> None:
    def trained(model: JointVAE, steps: int, checkpoint: Path | None = None) -> JointVAE:
        batches = [labelled(torch.rand(2, 1, 32, 32, generator=torch.Generator().manual_seed(i))) for i in range(4)]
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
        fit = Trainer(max_steps=steps, accelerator="cpu", default_root_dir=tmp_path, **quiet)  # type: ignore[arg-type]
        fit.fit(model, DataLoader(batches, batch_size=None), ckpt_path=checkpoint, weights_only=True)
        fit.save_checkpoint(tmp_path / f"{steps}.ckpt")
        return model

    old = trained(JointVAE((1, 32, 32), network=JointVAENetwork("paper")), 2)
    unnamed(tmp_path / "2.ckpt")
    again = vaezoo.load(tmp_path / "2.ckpt")
    x = torch.rand(2, 1, 32, 32)
    torch.testing.assert_close(again.represent(x), old.represent(x))
    resumed = trained(JointVAE((1, 32, 32)), 4, tmp_path / "2.ckpt")
    assert resumed.hparams["network"] == JointVAENetwork("paper").spec
    saved = vaezoo.load(tmp_path / "4.ckpt")
    torch.testing.assert_close(saved.represent(x), resumed.eval().represent(x))
    assert not torch.equal(saved.represent(x), again.represent(x))  # its encoder learns
