"""Layers shared by several networks."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def channels_last(x: Tensor) -> Tensor:
    """Images with channels last in memory, (B, C, H, W). One channel lies anywhere, so its stride has to say it."""
    if x.shape[1] == 1:
        return x.contiguous()[:, 0, :, :, None].permute(0, 3, 1, 2)
    return x.contiguous(memory_format=torch.channels_last)


class ChannelsLastConv(nn.Conv2d):
    """A convolution that computes with channels last, about a fifth faster on CPUs.

    Only activations change format. Weights, and so checkpoints and optimizers, stay the same.
    """

    def forward(self, x: Tensor) -> Tensor:
        """The same values, rounded in another order."""
        return super().forward(channels_last(x))


class _TransposedConvolution(torch.autograd.Function):
    """A transposed convolution on the CPU whose gradient of the bias is a plain sum.

    oneDNN computes it along with the gradient of the weights, which can take three times as long as without it.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None, geometry: tuple[tuple[int, ...], ...]) -> Tensor:
        stride, padding, output_padding = geometry
        if geometry == ((2, 2), (1, 1), (0, 0)) and weight.shape[2:] == (4, 4) and weight.shape[1] <= 4:
            return doubled(x, weight, bias)
        return F.conv_transpose2d(x, weight, bias, stride, padding, output_padding)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, weight, bias, ctx.geometry = inputs
        ctx.has_bias = bias is not None
        ctx.save_for_backward(x, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight), (stride, padding, output_padding), (grad,) = ctx.saved_tensors, ctx.geometry, grads
        wanted = [*ctx.needs_input_grad[:2], False]
        of_x, of_weight, _ = torch.ops.aten.convolution_backward(
            grad, x, weight, None, stride, padding, (1, 1), True, output_padding, 1, wanted
        )
        return of_x, of_weight, grad.sum((0, 2, 3)) if ctx.has_bias else None, None


def doubled(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A 4×4 transposed convolution with stride 2 and padding 1 as one 2×2 convolution.

    It has four outputs for each channel: the four pixels of the result around a corner of the input. With few channels,
    as in an image, it takes 0.3 to 0.4 of the time of the transposed convolution.

    Args:
        x: (B, inputs, H, W).
        weight: (inputs, outputs, 4, 4).
        bias: (outputs,).

    Returns:
        (B, outputs, 2H, 2W).
    """
    (_, _, height, width), (inputs, outputs) = x.shape, weight.shape[:2]
    # Row 2i + a of the result takes rows i - 1 + a and i + a of the input, with rows 3 - a and 1 - a of the kernel.
    kernel = weight.flip(2, 3).reshape(inputs, outputs, 2, 2, 2, 2).permute(3, 5, 1, 0, 2, 4)
    corners = F.conv2d(
        x, kernel.reshape(4 * outputs, inputs, 2, 2), None if bias is None else bias.repeat(4), padding=1
    ).unflatten(1, (2, 2, outputs))  # (B, a, b, outputs, H + 1, W + 1)
    rows = [torch.stack([corners[:, a, b, :, a : a + height, b : b + width] for b in (0, 1)], dim=-1) for a in (0, 1)]
    return torch.stack(rows, dim=3).reshape(-1, outputs, 2 * height, 2 * width)


class ConvTranspose(nn.ConvTranspose2d):
    """A transposed convolution with faster gradients on CPUs, and faster to images of few channels."""

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        """The same values, rounded in another order."""
        if output_size is not None or not x.is_cpu or torch.compiler.is_exporting():
            return super().forward(x, output_size)
        weight, bias = self.weight, self.bias
        if torch.is_autocast_enabled("cpu"):
            dtype = torch.get_autocast_dtype("cpu")
            x, weight, bias = x.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
        geometry = (tuple(self.stride), tuple(self.padding), tuple(self.output_padding))
        result: Tensor = _TransposedConvolution.apply(x, weight, bias, geometry)
        return result


class ChannelsLastConvTranspose(ConvTranspose):
    """The same with channels last."""

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        """The same values, rounded in another order."""
        return super().forward(channels_last(x), output_size)


class InstanceNorm(nn.Module):
    """Instance normalisation as group normalisation with one channel per group, which is twice as fast on CPUs.

    Args:
        channels: Channels of the images.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels

    def forward(self, x: Tensor) -> Tensor:
        """Images with mean 0 and variance 1 per channel, (B, C, H, W)."""
        return F.group_norm(x, self.channels)

    def extra_repr(self) -> str:
        """Channels."""
        return str(self.channels)


class _JoinedEncoder(nn.Module):
    """Concatenate image features and labels, then apply dense layers."""

    def __init__(self, stem: nn.Module, dense: nn.Module) -> None:
        super().__init__()
        self.stem, self.dense = stem, dense

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        features: Tensor = self.dense(torch.cat([self.stem(x), y], dim=1))
        return features


class _ForkedDecoder(nn.Module):
    """One trunk, with heads for the image and for every label."""

    def __init__(self, trunk: nn.Module, image: nn.Module, heads: Sequence[nn.Module]) -> None:
        super().__init__()
        self.trunk, self.image, self.heads = trunk, image, nn.ModuleList(heads)

    def forward(self, z: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        hidden = self.trunk(z)
        return self.image(hidden), tuple(head(hidden) for head in self.heads)


def joined(stem: Sequence[nn.Module], dense: Sequence[nn.Module], labels: Sequence[int]) -> nn.Module:
    """Layers from an image to features. Labels, if any, enter before the dense layers."""
    if not labels:
        return nn.Sequential(*stem, *dense)
    return _JoinedEncoder(nn.Sequential(*stem), nn.Sequential(*dense))


def forked(trunk: Sequence[nn.Module], image: Sequence[nn.Module], heads: Sequence[nn.Module]) -> nn.Module:
    """Layers from latents to an image. Label heads, if any, share the trunk."""
    if not heads:
        return nn.Sequential(*trunk, *image)
    return _ForkedDecoder(nn.Sequential(*trunk), nn.Sequential(*image), heads)


def rectifier(leak: float) -> nn.Module:
    """ReLU, or leaky ReLU."""
    return nn.LeakyReLU(leak) if leak else nn.ReLU()


def dense_layers(widths: Sequence[int], activation: type[nn.Module]) -> list[nn.Module]:
    """Linear layers with Glorot weights, each followed by an activation."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [glorot(nn.Linear(inputs, outputs)), activation()]
    return layers


def glorot(linear: nn.Linear) -> nn.Linear:
    """Give a layer Glorot-uniform weights and zero bias."""
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear


def check_widths(**widths: tuple[int, ...]) -> None:
    """Raise ValueError unless all layer widths are at least 1."""
    for name, values in widths.items():
        if not values or min(values) < 1:
            raise ValueError(f"{name} must name at least one layer, each 1 wide or more, not {list(values)}")
