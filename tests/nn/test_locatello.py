"""The network of disentanglement_lib, layer by layer from its `conv_encoder` and `deconv_decoder`."""

from torch import nn

from vaezoo.nn.networks import LocatelloNetwork


def test_layers_are_those_of_the_released_code() -> None:
    network = LocatelloNetwork()
    encoder, decoder = network.encoder((3, 64, 64)), network.decoder((3, 64, 64), 10)
    convolutions = [layer for layer in encoder.modules() if isinstance(layer, nn.Conv2d)]
    assert [(layer.out_channels, layer.kernel_size, layer.stride) for layer in convolutions] == [
        *((32, (4, 4), (2, 2)), (32, (4, 4), (2, 2)), (64, (2, 2), (2, 2)), (64, (2, 2), (2, 2)))
    ]
    transposed = [layer for layer in decoder.modules() if isinstance(layer, nn.ConvTranspose2d)]
    assert [(layer.in_channels, layer.out_channels) for layer in transposed] == [(64, 64), (64, 32), (32, 32), (32, 3)]
    assert {(layer.kernel_size, layer.stride) for layer in transposed} == {((4, 4), (2, 2))}
    dense = [[m for m in half.modules() if isinstance(m, nn.Linear)] for half in (encoder, decoder)]
    assert [[(layer.in_features, layer.out_features) for layer in half] for half in dense] == [
        [(64 * 4 * 4, 256)],
        [(10, 256), (256, 64 * 4 * 4)],
    ]
    activations = {type(m) for half in (encoder, decoder) for m in half.modules() if "U" in type(m).__name__}
    assert activations - {nn.Unflatten} == {nn.ReLU}
