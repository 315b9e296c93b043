"""The `Network` interface, and the convolutional network of most papers.

A network is a specification; `encoder` and `decoder` build its two halves for an image shape (channels, height, width).
The encoder ends in features for the latent heads. The decoder ends in logits, before any sigmoid. Labels that share the
latents with the image (WeLa-VAE) enter the encoder at its first dense layer and leave the decoder at its last hidden
dense layer.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import ClassVar

from torch import nn

from vaezoo.nn.layers import (
    ChannelsLastConv,
    ChannelsLastConvTranspose,
    ConvTranspose,
    InstanceNorm,
    check_widths,
    forked,
    joined,
    rectifier,
)
from vaezoo.specs import Specified

Shape = tuple[int, int, int]


class Network(Specified):
    """Builds an encoder and a decoder for a given image shape."""

    features: int
    """Width of what the encoder hands to the latent heads."""

    def encoder(self, image_shape: Shape, labels: Sequence[int] = ()) -> nn.Module:
        """Module from images (B, C, H, W) to features (B, features).

        Args:
            image_shape: Channels, height and width.
            labels: Number of classes of each label. If there are any, the module takes images and (B, Σ labels).
        """
        raise NotImplementedError

    def decoder(self, image_shape: Shape, latent_size: int, labels: Sequence[int] = ()) -> nn.Module:
        """Module from latents (B, latent_size) to logits (B, C, H, W).

        Args:
            image_shape: Channels, height and width.
            latent_size: Width of the latents.
            labels: Number of classes of each label. If there are any, the module returns the image logits and a tuple
                of label logits, (B, classes) each.
        """
        raise NotImplementedError

    def built(self, image_shape: Shape) -> str:
        """One-line summary of the network built for an image shape."""
        channels, height, width = image_shape
        return f"{type(self).__name__} for {height}×{width} images of {channels} channel{'s' * (channels > 1)}"

    def initialise(self, heads: nn.Module) -> None:
        """Initialise the latent heads. Keeps PyTorch's defaults unless overridden."""


class ConvNetwork(Network):
    """Stride-2 convolutions, then dense layers; the decoder mirrors the encoder.

    Height and width may be any size that the convolutions can halve, at least 32 pixels with the default channels.

    Args:
        channels: Channels after each convolution. Defaults to 32, 32, 64, 64, plus another 64 for each doubling of the
            shorter side from 128 pixels on, which leaves 4 to 7 pixels.
        kernels: Kernel of each encoder convolution, 4 (padding 1) or 2 (padding 0); further convolutions repeat the
            last one. Defaults to 4. The decoder's transposed convolutions are always 4×4.
        hidden: Widths of the dense layers, in the encoder's order.
        instance_norm: Normalise the output of each convolution except the decoder's last.
        leak: Negative slope of the activations after the encoder's last convolution and dense layers; 0 is ReLU.
        odd_sizes: Accept sizes that the strides do not divide. The decoder pads its output to match.
    """

    usual: ClassVar[tuple[int, ...]] = (32, 32, 64, 64)
    """Channels up to 127 pixels, unless others are given."""

    def __init__(
        self,
        channels: Sequence[int] | None = None,
        kernels: Sequence[int] | None = None,
        hidden: Sequence[int] = (256,),
        instance_norm: bool = False,
        leak: float = 0.0,
        odd_sizes: bool = True,
    ) -> None:
        self.deepens, self.channels = channels is None, self.usual if channels is None else tuple(channels)
        self.kernels = tuple(kernels) if kernels is not None else None
        if self.kernels and (len(self.kernels) != len(self.channels) or set(self.kernels) - {2, 4}):
            raise ValueError(f"kernels must be 2 or 4 for each of {len(self.channels)} channels, not {self.kernels}")
        self.hidden = tuple(hidden)
        check_widths(channels=self.channels, hidden=self.hidden)
        self.features = self.hidden[-1]
        self.instance_norm, self.leak, self.odd_sizes = instance_norm, leak, odd_sizes

    def channels_for(self, image_shape: Shape) -> tuple[int, ...]:
        """Channels after each convolution for this image size."""
        further = min(image_shape[1:]).bit_length() - 7 if self.deepens else 0  # 128 pixels have 8 bits
        return self.channels + self.channels[-1:] * further

    def decoder_channels_for(self, image_shape: Shape) -> tuple[int, ...]:
        """Channels after each transposed convolution except the last: the encoder's, reversed."""
        return self.channels_for(image_shape)[-2::-1]

    def paddings_for(self, image_shape: Shape) -> tuple[tuple[int, int], ...] | None:
        """Padding in height and width of each convolution. Halves the size by default."""
        return None

    def encoder(self, image_shape: Shape, labels: Sequence[int] = ()) -> nn.Module:
        """Convolutions, then dense layers."""
        channels = self.channels_for(image_shape)
        sizes = self._sizes(image_shape)
        kernels = self.kernels or (4,)
        kernels += kernels[-1:] * (len(channels) - len(kernels))
        paddings = self.paddings_for(image_shape) or [(kernel // 4, kernel // 4) for kernel in kernels]
        stem: list[nn.Module] = []
        convolution = nn.Conv2d if self.instance_norm else ChannelsLastConv  # the norm is slow with channels last
        for i, (inputs, outputs) in enumerate(pairwise((image_shape[0], *channels))):
            stem.append(convolution(inputs, outputs, kernels[i], stride=2, padding=paddings[i]))
            stem += self._after_convolution(outputs, self.leak if i == len(channels) - 1 else 0.0)
        dense: list[nn.Module] = []
        for inputs, outputs in pairwise((channels[-1] * prod(sizes[-1]) + sum(labels), *self.hidden)):
            dense += [nn.Linear(inputs, outputs), rectifier(self.leak)]
        return joined([*stem, nn.Flatten()], dense, labels)

    def decoder(self, image_shape: Shape, latent_size: int, labels: Sequence[int] = ()) -> nn.Module:
        """Dense layers, then transposed convolutions up to the image's size."""
        sizes = self._sizes(image_shape)
        first = self.channels_for(image_shape)[-1]
        channels = (first, *self.decoder_channels_for(image_shape), image_shape[0])
        trunk: list[nn.Module] = []
        widths = (latent_size, *reversed(self.hidden), first * prod(sizes[-1]))
        for inputs, outputs in pairwise(widths):
            trunk += [nn.Linear(inputs, outputs), nn.ReLU()]
        layers: list[nn.Module] = [nn.Unflatten(1, (first, *sizes[-1]))]
        paddings = self.paddings_for(image_shape) or [(1, 1)] * len(sizes[1:])
        convolution = ConvTranspose if self.instance_norm else ChannelsLastConvTranspose
        for i, (inputs, outputs) in enumerate(pairwise(channels)):
            (height, width), (rows, columns), padding = sizes[-1 - i], sizes[-2 - i], paddings[-1 - i]
            # An odd size lost its last row or column on the way down; output padding gives it back.
            odd = (rows - 2 * (height + 1 - padding[0]), columns - 2 * (width + 1 - padding[1]))
            layers.append(convolution(inputs, outputs, 4, stride=2, padding=padding, output_padding=odd))
            if i < len(channels) - 2:
                layers += self._after_convolution(outputs, 0.0)
        return forked(trunk, layers, [nn.Linear(widths[-1], classes) for classes in labels])

    def built(self, image_shape: Shape) -> str:
        """Convolutions, their output size, and dense layers."""
        (height, width), channels = self._sizes(image_shape)[-1], self.channels_for(image_shape)
        layers = f"{len(channels)} convolutions ({', '.join(map(str, channels))}) down to {height}×{width}"
        return f"{super().built(image_shape)}: {layers}, dense {', '.join(map(str, self.hidden))}"

    def _after_convolution(self, channels: int, leak: float) -> list[nn.Module]:
        norm = [InstanceNorm(channels)] if self.instance_norm else []
        return [*norm, rectifier(leak)]

    def _sizes(self, image_shape: Shape) -> list[tuple[int, int]]:
        """Height and width before the first convolution and after each."""
        if paddings := self.paddings_for(image_shape):
            sizes = [image_shape[1:]]
            for down, across in paddings:
                sizes.append(((sizes[-1][0] + 2 * down) // 2 - 1, (sizes[-1][1] + 2 * across) // 2 - 1))
            return sizes
        depth = len(self.channels_for(image_shape))
        sizes = [(image_shape[1] >> i, image_shape[2] >> i) for i in range(depth + 1)]
        least = 2 if self.instance_norm else 1  # a single pixel has no variance to normalise by
        if min(sizes[-1]) < least or not (self.odd_sizes or all(size % 2**depth == 0 for size in sizes[0])):
            fits = [max(least, round(size / 2**depth)) * 2**depth for size in sizes[0]]
            must = f"at least {least * 2**depth}" if self.odd_sizes else f"multiples of {2**depth}"
            raise ValueError(
                f"{type(self).__name__} halves the image {depth} times, so its sides must be {must}; "
                f"{sizes[0][0]}×{sizes[0][1]} is not: resize the images to {fits[0]}×{fits[1]} or take another network"
            )
        return sizes
