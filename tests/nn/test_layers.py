"""The transposed convolution against PyTorch's own."""

import pytest
import torch
from torch import nn

from vaezoo.nn.layers import ChannelsLastConvTranspose, ConvTranspose

LAYERS = [ConvTranspose, ChannelsLastConvTranspose]
GEOMETRIES = {
    "image of 3 channels": {"out_channels": 3, "kernel_size": 4, "stride": 2, "padding": 1},
    "image of 1 channel": {"out_channels": 1, "kernel_size": 4, "stride": 2, "padding": 1},
    "no bias": {"out_channels": 2, "kernel_size": 4, "stride": 2, "padding": 1, "bias": False},
    "many channels": {"out_channels": 6, "kernel_size": 4, "stride": 2, "padding": 1},
    "odd size": {"out_channels": 3, "kernel_size": 4, "stride": 2, "padding": 1, "output_padding": (1, 0)},
    "other padding": {"out_channels": 3, "kernel_size": 4, "stride": 2, "padding": (0, 2)},
    "other kernel": {"out_channels": 2, "kernel_size": 2, "stride": 2, "padding": 0},
}


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("name", GEOMETRIES)
def test_values_and_gradients_are_those_of_pytorch(kind: type[ConvTranspose], name: str) -> None:
    torch.manual_seed(0)
    ours = kind(5, **GEOMETRIES[name]).double()
    theirs = nn.ConvTranspose2d(5, **GEOMETRIES[name]).double()
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(3, 5, 4, 6, dtype=torch.float64)
    found, gradients = [], []
    for layer in (ours, theirs):
        given = x.clone().requires_grad_()
        found.append(layer(given))
        weights = torch.arange(found[-1].numel()).reshape(found[-1].shape).sin()
        loss = (found[-1] * weights).square().sum()
        gradients.append(torch.autograd.grad(loss, [given, *layer.parameters()]))
    torch.testing.assert_close(*found)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("name", ["image of 3 channels", "many channels"])
def test_second_derivatives(name: str) -> None:
    torch.manual_seed(0)
    layer, x = ConvTranspose(2, **GEOMETRIES[name]).double(), torch.randn(1, 2, 2, 2, dtype=torch.float64)
    assert torch.autograd.gradgradcheck(layer, x.requires_grad_())


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("name", ["image of 3 channels", "many channels"])
def test_autocast_computes_in_bfloat16_and_keeps_gradients_in_float32(kind: type[ConvTranspose], name: str) -> None:
    torch.manual_seed(0)
    layer, x = kind(5, **GEOMETRIES[name]), torch.randn(3, 5, 4, 6)
    with torch.autocast("cpu", torch.bfloat16):
        found, expected = layer(x), nn.ConvTranspose2d.forward(layer, x)
    assert found.dtype == expected.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected, atol=2e-2, rtol=2e-2)
    found.sum().backward()
    assert {parameter.grad.dtype for parameter in layer.parameters() if parameter.grad is not None} == {torch.float32}


def test_one_image_at_a_time_and_all_at_once() -> None:
    torch.manual_seed(0)
    layer, x = ConvTranspose(5, **GEOMETRIES["image of 3 channels"]).double(), torch.randn(3, 1, 5, 4, 4).double()
    torch.testing.assert_close(torch.func.vmap(layer)(x), torch.stack([layer(image) for image in x]))
