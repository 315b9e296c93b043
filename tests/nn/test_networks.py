import pytest
import torch
from torch import nn

from vaezoo.models.base import VAE
from vaezoo.nn.layers import InstanceNorm
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


def shapes_after(module: nn.Module, kind: type[nn.Module], x: torch.Tensor) -> list[tuple[int, ...]]:
    """Channels, height and width after each layer of a kind."""
    found = []
    for layer in module:  # type: ignore[attr-defined]
        x = layer(x)
        found += [tuple(x.shape[1:])] if isinstance(layer, kind) else []
    return found


def parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_parted_vae_at_celeba_s_size_is_table_5_with_the_released_paddings() -> None:
    shape = (3, 218, 178)
    network = PartedVAENetwork()
    encoder, decoder = network.encoder(shape), network.decoder(shape, 18)
    sizes = [(32, 108, 90), (32, 54, 46), (64, 26, 24), (64, 12, 12), (64, 5, 5)]
    assert shapes_after(encoder, nn.Conv2d, torch.rand(1, *shape)) == sizes
    assert shapes_after(decoder, nn.ConvTranspose2d, torch.randn(1, 18)) == [
        *[(64, 12, 12), (64, 26, 24), (32, 54, 46), (32, 108, 90)],
        shape,
    ]
    assert widths(encoder) == [(1600, 256)]
    assert widths(decoder) == [(18, 256), (256, 1600)]
    paddings = [m.padding for m in encoder if isinstance(m, nn.Conv2d)]
    assert paddings == [(0, 2), (1, 2), (0, 2), (0, 1), (0, 0)]
    # 16 weights a pair of channels and a bias a channel; then the dense layer.
    convolutions = 16 * (3 * 32 + 32 * 32 + 32 * 64 + 64 * 64 + 64 * 64) + 32 + 32 + 64 + 64 + 64
    assert parameters(encoder) == convolutions + 1600 * 256 + 256 == 591_872
    transposed = 16 * (64 * 64 + 64 * 64 + 64 * 32 + 32 * 32 + 32 * 3) + 64 + 64 + 32 + 32 + 3
    assert parameters(decoder) == transposed + (18 * 256 + 256) + (256 * 1600 + 1600) == 598_019


def test_other_odd_sizes_come_back_whole() -> None:
    shape = (3, 109, 89)
    network = PartedVAENetwork()
    assert network.decoder(shape, 18)(torch.randn(1, 18)).shape == (1, *shape)


def test_joint_vae_s_encoder_at_32_pixels_has_the_released_number_of_parameters() -> None:
    encoder = JointVAENetwork().encoder((1, 32, 32))
    heads = nn.Linear(256, 2 * 10), nn.Linear(256, 10)
    assert parameters(encoder) == 16 * (32 + 32 * 64 + 64 * 64) + 32 + 64 + 64 + 1024 * 256 + 256 == 361_376
    assert parameters(encoder) + sum(map(parameters, heads)) == 369_086
    assert parameters(JointVAENetwork("paper").encoder((1, 32, 32))) < 361_376
    with pytest.raises(ValueError, match="variant must be 'released' or 'paper', not 'letter'"):
        JointVAENetwork("letter")  # type: ignore[arg-type]


def channels(module: nn.Module, kind: type[nn.Module]) -> list[int]:
    return [m.out_channels for m in module.modules() if isinstance(m, kind)]  # type: ignore[misc]


def widths(module: nn.Module) -> list[tuple[int, int]]:
    return [(m.in_features, m.out_features) for m in module.modules() if isinstance(m, nn.Linear)]


@pytest.mark.parametrize(
    ("network", "shape", "convolutions", "transposed", "dense"),
    [
        (JointVAENetwork(), (3, 64, 64), [32, 32, 64, 64], [64, 32, 32, 3], [(1024, 256)]),  # Dupont, App. B
        (JointVAENetwork("paper"), (3, 64, 64), [32, 32, 64, 64], [64, 32, 32, 3], [(1024, 256)]),
        (JointVAENetwork(), (1, 32, 32), [32, 64, 64], [32, 32, 1], [(1024, 256)]),  # the released weights
        (JointVAENetwork("paper"), (1, 32, 32), [32, 32, 64], [32, 32, 1], [(1024, 256)]),
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
    assert len([m for m in encoder.modules() if isinstance(m, InstanceNorm)]) == 4
    assert len([m for m in decoder.modules() if isinstance(m, InstanceNorm)]) == 3


@pytest.mark.parametrize("size", [(32, 32), (5, 3), (2, 2)])
def test_instance_norm_is_pytorchs(size: tuple[int, int]) -> None:
    x = (3 * torch.randn(4, 6, *size) + 1).requires_grad_()
    weights = torch.randn(4, 6, *size)
    found, expected = InstanceNorm(6)(x), nn.InstanceNorm2d(6)(x)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    (gradient,), (right,) = (torch.autograd.grad((y * weights).sum(), x) for y in (found, expected))
    torch.testing.assert_close(gradient, right, rtol=1e-4, atol=1e-5)


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


def test_tanh_on_both_sides_is_that_of_wela_vae_s_scripts() -> None:
    network = DenseNetwork(encoder_activation="tanh", decoder_activation="tanh")
    encoder, decoder = network.encoder((1, 64, 64), [2, 2]), network.decoder((1, 64, 64), 2, [2, 2])
    for module in (encoder, decoder):
        kinds = [type(m) for m in module.modules()]
        assert kinds.count(nn.Tanh) == 2
        assert nn.ReLU not in kinds
    assert network.spec["init_args"] == {"encoder_activation": "tanh", "decoder_activation": "tanh"}
    assert nn.Tanh not in [type(m) for m in DenseNetwork().encoder((1, 64, 64)).modules()]
    with pytest.raises(ValueError, match="an activation must be one of relu, tanh, not 'sine'"):
        DenseNetwork(encoder_activation="sine")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("network", "shape", "what"),
    [
        (BurgessNetwork(), (1, 8, 40), r"at least 16; 8×40 is not: resize the images to 16×32"),
        (LaRVAENetwork(), (1, 28, 28), r"at least 32; 28×28 is not: resize the images to 32×32"),
        (ConvNetwork(odd_sizes=False), (1, 50, 64), r"multiples of 16; 50×64 is not: resize the images to 48×64"),
    ],
)
def test_a_size_that_does_not_fit_is_an_error_that_names_one_that_does(
    network: ConvNetwork, shape: tuple[int, int, int], what: str
) -> None:
    with pytest.raises(ValueError, match=what):
        network.encoder(shape)


@pytest.mark.parametrize("network", [*CONVOLUTIONAL, ConvNetwork()], ids=lambda network: type(network).__name__)
@pytest.mark.parametrize("shape", [(1, 33, 47), (3, 50, 70), (1, 32, 200), (3, 127, 130), (3, 218, 178), (1, 257, 300)])
def test_any_size_from_32_pixels_on_comes_back_whole(network: ConvNetwork, shape: tuple[int, int, int]) -> None:
    features = network.encoder(shape)(torch.rand(2, *shape))
    assert features.shape == (2, network.features)
    assert network.decoder(shape, 7)(torch.randn(2, 7)).shape == (2, *shape)


@pytest.mark.parametrize("network", [*CONVOLUTIONAL, ConvNetwork()], ids=lambda network: type(network).__name__)
def test_large_images_get_a_convolution_more_for_each_doubling(network: ConvNetwork) -> None:
    for side, depth in ((64, 4), (127, 4), (128, 5), (255, 5), (256, 6), (511, 6), (512, 7)):
        encoder = network.encoder((1, side, side + 100))
        found = channels(encoder, nn.Conv2d)
        assert len(found) == depth
        assert found[4:] == found[3:4] * (depth - 4)
        first = next(m for m in encoder.modules() if isinstance(m, nn.Linear))
        assert first.in_features == found[-1] * (side >> depth) * ((side + 100) >> depth)
        assert 4 <= side >> depth < 8


def test_larvae_goes_on_with_kernels_of_2() -> None:
    encoder = LaRVAENetwork().encoder((3, 256, 256))
    assert [m.kernel_size[0] for m in encoder.modules() if isinstance(m, nn.Conv2d)] == [4, 4, 2, 2, 2, 2]


def test_channels_that_are_given_stay_as_they_are() -> None:
    assert channels(ConvNetwork(channels=(8, 16)).encoder((1, 256, 256)), nn.Conv2d) == [8, 16]


def test_a_network_says_what_it_builds() -> None:
    said = "BurgessNetwork for 50×70 images of 3 channels: 4 convolutions (32, 32, 32, 32) down to 3×4, dense 256, 256"
    assert BurgessNetwork().built((3, 50, 70)) == said
    said = "DenseNetwork for 64×32 images of 1 channel: dense 1200, 1200 down, 1200, 1200 up"
    assert DenseNetwork().built((1, 64, 32)) == said
    assert PartedVAENetwork().built((3, 218, 178)).endswith("(32, 32, 64, 64, 64) down to 5×5, dense 256")


def test_kernels_must_match_channels() -> None:
    with pytest.raises(ValueError, match="kernels must be 2 or 4"):
        ConvNetwork(channels=(8, 8), kernels=(4, 3))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("network", [BurgessNetwork(), LaRVAENetwork()])
def test_channels_come_last_in_activations_alone_and_not_beside_instance_norm(
    network: ConvNetwork, channels: int
) -> None:
    torch.manual_seed(0)
    shape = (channels, 64, 64)
    encoder, decoder = network.encoder(shape), network.decoder(shape, 4)
    outputs = []
    for layer in (*encoder, *decoder):
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            assert layer.weight.is_contiguous()  # what checkpoints and fused optimizers hold
            layer.register_forward_hook(lambda layer, given, found: outputs.append((layer, given[0], found)))
    encoder(torch.rand(2, *shape))
    decoder(torch.randn(2, 4)).sum().backward()
    assert len(outputs) == 8
    for layer, given, found in outputs:
        last = found.is_contiguous(memory_format=torch.channels_last) and not found.is_contiguous()
        assert last == (not network.instance_norm and layer is not decoder[-1]), layer  # the last one's is an image
        plain = nn.Conv2d if isinstance(layer, nn.Conv2d) else nn.ConvTranspose2d
        torch.testing.assert_close(found, plain.forward(layer, given.contiguous()))
    assert all(p.grad is None or p.grad.is_contiguous() for p in decoder.parameters())
