import pytest
import torch
from torch import nn

from vaezoo.models.base import VAE
from vaezoo.nn.networks import (
    BurgessNetwork,
    ConvNetwork,
    DenseNetwork,
    JointVAENetwork,
    LaRVAENetwork,
    Network,
    PartedVAENetwork,
)

CONVOLUTIONAL = [BurgessNetwork(), JointVAENetwork(), PartedVAENetwork(), LaRVAENetwork()]


@pytest.mark.parametrize("network", [*CONVOLUTIONAL, DenseNetwork((16,), (16,))], ids=lambda n: type(n).__name__)
@pytest.mark.parametrize("shape", [(1, 32, 32), (3, 64, 64), (3, 64, 32), (2, 128, 128)])
def test_encoder_and_decoder_fit_the_image(network: Network, shape: tuple[int, int, int]) -> None:
    encoder, decoder = network.encoder(shape), network.decoder(shape, 7)
    assert encoder(torch.rand(2, *shape)).shape == (2, network.features)
    assert decoder(torch.randn(2, 7)).shape == (2, *shape)


def test_parted_vae_fits_celeba_s_odd_size() -> None:
    shape = (3, 218, 178)
    network = PartedVAENetwork()
    encoder, decoder = network.encoder(shape), network.decoder(shape, 18)
    assert [m.out_channels for m in encoder if isinstance(m, nn.Conv2d)] == [32, 32, 64, 64, 64]  # Table 5
    assert encoder(torch.rand(1, *shape)).shape == (1, 256)
    assert decoder(torch.randn(1, 18)).shape == (1, *shape)


def channels(module: nn.Module, kind: type[nn.Module]) -> list[int]:
    return [m.out_channels for m in module.modules() if isinstance(m, kind)]  # type: ignore[misc]


def widths(module: nn.Module) -> list[tuple[int, int]]:
    return [(m.in_features, m.out_features) for m in module.modules() if isinstance(m, nn.Linear)]


@pytest.mark.parametrize(
    ("network", "shape", "convolutions", "transposed", "dense"),
    [
        (JointVAENetwork(), (3, 64, 64), [32, 32, 64, 64], [64, 32, 32, 3], [(1024, 256)]),  # Dupont, App. B
        (JointVAENetwork(), (1, 32, 32), [32, 32, 64], [32, 32, 1], [(1024, 256)]),
        (PartedVAENetwork(), (1, 32, 32), [32, 64, 64], [32, 32, 1], [(1024, 256)]),  # Table 3
        (PartedVAENetwork(), (1, 64, 64), [32, 32, 64, 64], [64, 32, 32, 1], [(1024, 256)]),  # Table 4
        (LaRVAENetwork(), (3, 64, 64), [32, 32, 64, 64], [64, 32, 32, 3], [(1024, 256)]),  # Table D.2
        (BurgessNetwork(), (1, 64, 64), [32] * 4, [32, 32, 32, 1], [(512, 256), (256, 256)]),
    ],
)
def test_layers_are_those_of_the_tables(
    network: ConvNetwork,
    shape: tuple[int, int, int],
    convolutions: list[int],
    transposed: list[int],
    dense: list[tuple[int, int]],
) -> None:
    encoder, decoder = network.encoder(shape), network.decoder(shape, 10)
    assert channels(encoder, nn.Conv2d) == convolutions
    assert channels(decoder, nn.ConvTranspose2d) == transposed
    assert widths(encoder) == dense
    assert widths(decoder) == [(10, 256), *[(b, a) for a, b in reversed(dense)]]


def test_larvae_has_kernels_4_4_2_2_and_instance_norm_but_not_on_the_last_layer() -> None:
    encoder, decoder = LaRVAENetwork().encoder((3, 64, 64)), LaRVAENetwork().decoder((3, 64, 64), 11)
    assert [m.kernel_size[0] for m in encoder.modules() if isinstance(m, nn.Conv2d)] == [4, 4, 2, 2]
    assert len([m for m in encoder.modules() if isinstance(m, nn.InstanceNorm2d)]) == 4
    assert len([m for m in decoder.modules() if isinstance(m, nn.InstanceNorm2d)]) == 3


def test_parted_vae_leaks_on_the_last_convolution_and_on_h_only() -> None:
    encoder = PartedVAENetwork().encoder((1, 64, 64))
    slopes = [m.negative_slope if isinstance(m, nn.LeakyReLU) else 0.0 for m in encoder if "ReLU" in type(m).__name__]
    assert slopes == [0.0, 0.0, 0.0, 0.1, 0.1]


def test_dense_network_is_glorot_uniform_with_zero_biases() -> None:
    encoder = DenseNetwork().encoder((1, 64, 64))
    first = next(m for m in encoder.modules() if isinstance(m, nn.Linear))
    bound = (6 / (4096 + 1200)) ** 0.5
    assert widths(encoder) == [(4096, 1200), (1200, 1200)]
    assert bound * 0.999 < first.weight.abs().max() <= bound
    assert first.bias.abs().max() == 0


def test_latent_heads_of_a_dense_network_are_glorot_uniform_too() -> None:
    head = VAE((1, 8, 8), network=DenseNetwork((400,), (8,))).heads["z"]
    (layer,) = [m for m in head.modules() if isinstance(m, nn.Linear)]
    bound = (6 / (400 + 20)) ** 0.5
    assert bound * 0.999 < layer.weight.abs().max() <= bound
    assert layer.bias.abs().max() == 0


def test_tanh_decoder_is_that_of_2d_shapes() -> None:
    decoder = DenseNetwork(decoder_widths=(1200, 1200, 1200), decoder_activation="tanh").decoder((1, 64, 64), 10)
    assert widths(decoder) == [(10, 1200), (1200, 1200), (1200, 1200), (1200, 4096)]
    assert len([m for m in decoder.modules() if isinstance(m, nn.Tanh)]) == 3


@pytest.mark.parametrize("side", [50, 28, 8])
def test_a_size_that_does_not_fit_is_an_error_that_names_one_that_does(side: int) -> None:
    with pytest.raises(ValueError, match=rf"{side}×{side}.*resize the images to"):
        BurgessNetwork().encoder((1, side, side))


def test_kernels_must_match_channels() -> None:
    with pytest.raises(ValueError, match="kernels must be 2 or 4"):
        ConvNetwork(channels=(8, 8), kernels=(4, 3))
