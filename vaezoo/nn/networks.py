"""Encoders and decoders: one class for each architecture table in the papers.

A network is a specification; `encoder` and `decoder` build its two halves for an image shape (channels, height, width).
The encoder ends in features that the latent heads read; the decoder ends in logits, before any sigmoid. Labels that
share the latents with the image (WeLa-VAE) enter the encoder at its first dense layer and leave the decoder at its last
hidden dense layer.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Literal

from torch import nn

from vaezoo.nn.layers import dense_layers, forked, glorot, joined, rectifier
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
            labels: Number of classes of each label; where there are any, the module takes images and (B, Σ labels).
        """
        raise NotImplementedError

    def decoder(self, image_shape: Shape, latent_size: int, labels: Sequence[int] = ()) -> nn.Module:
        """Module from latents (B, latent_size) to logits (B, C, H, W).

        Args:
            image_shape: Channels, height and width.
            latent_size: Width of the latents.
            labels: Number of classes of each label; where there are any, the module returns the image's logits and a
                tuple of the labels', (B, classes) each.
        """
        raise NotImplementedError

    def initialise(self, heads: nn.Module) -> None:
        """Set the first weights of the latent heads; those of PyTorch's layers unless overridden."""


class ConvNetwork(Network):
    """Stride-2 convolutions, then dense layers; the decoder mirrors the encoder.

    Args:
        channels: Channels after each convolution.
        kernels: Kernel of each encoder convolution, 4 (padding 1) or 2 (padding 0); all 4 where None. The decoder's
            transposed convolutions are 4×4 throughout.
        hidden: Widths of the dense layers, in the encoder's order.
        instance_norm: Normalise each convolution's output, the last one of the decoder excepted.
        leak: Slope below zero of the last convolution's and the dense layers' activation in the encoder; 0 is ReLU.
        odd_sizes: Accept sizes that the strides do not divide; the decoder pads its output to match.
    """

    def __init__(
        self,
        channels: Sequence[int] = (32, 32, 64, 64),
        kernels: Sequence[int] | None = None,
        hidden: Sequence[int] = (256,),
        instance_norm: bool = False,
        leak: float = 0.0,
        odd_sizes: bool = False,
    ) -> None:
        self.channels = tuple(channels)
        self.kernels = tuple(kernels) if kernels is not None else None
        if self.kernels and (len(self.kernels) != len(self.channels) or set(self.kernels) - {2, 4}):
            raise ValueError(f"kernels must be 2 or 4 for each of {len(self.channels)} channels, not {self.kernels}")
        self.hidden = tuple(hidden)
        _check_widths(channels=self.channels, hidden=self.hidden)
        self.features = self.hidden[-1]
        self.instance_norm, self.leak, self.odd_sizes = instance_norm, leak, odd_sizes

    def channels_for(self, image_shape: Shape) -> tuple[int, ...]:
        """Channels after each convolution for this image size."""
        return self.channels

    def decoder_channels_for(self, image_shape: Shape) -> tuple[int, ...]:
        """Channels after each transposed convolution but the last; the encoder's backwards."""
        return self.channels_for(image_shape)[-2::-1]

    def encoder(self, image_shape: Shape, labels: Sequence[int] = ()) -> nn.Module:
        """Convolutions, then dense layers."""
        channels = self.channels_for(image_shape)
        sizes = self._sizes(image_shape)
        kernels = self.kernels or (4,) * len(channels)
        stem: list[nn.Module] = []
        for i, (inputs, outputs) in enumerate(pairwise((image_shape[0], *channels))):
            kernel = kernels[i]
            stem.append(nn.Conv2d(inputs, outputs, kernel, stride=2, padding=kernel // 4))
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
        for i, (inputs, outputs) in enumerate(pairwise(channels)):
            # An odd size lost its last row or column on the way down; output padding gives it back.
            odd = (sizes[-2 - i][0] % 2, sizes[-2 - i][1] % 2)
            layers.append(nn.ConvTranspose2d(inputs, outputs, 4, stride=2, padding=1, output_padding=odd))
            if i < len(channels) - 2:
                layers += self._after_convolution(outputs, 0.0)
        return forked(trunk, layers, [nn.Linear(widths[-1], classes) for classes in labels])

    def _after_convolution(self, channels: int, leak: float) -> list[nn.Module]:
        norm = [nn.InstanceNorm2d(channels)] if self.instance_norm else []
        return [*norm, rectifier(leak)]

    def _sizes(self, image_shape: Shape) -> list[tuple[int, int]]:
        """Height and width before the first convolution and after each."""
        depth = len(self.channels_for(image_shape))
        sizes = [(image_shape[1] >> i, image_shape[2] >> i) for i in range(depth + 1)]
        if min(sizes[-1]) < 1 or not (self.odd_sizes or all(size % 2**depth == 0 for size in sizes[0])):
            fits = [max(1, round(size / 2**depth)) * 2**depth for size in sizes[0]]
            raise ValueError(
                f"{type(self).__name__} halves the image {depth} times, so its sides must be multiples of {2**depth}; "
                f"{sizes[0][0]}×{sizes[0][1]} is not: resize the images to {fits[0]}×{fits[1]} or take another network"
            )
        return sizes


class BurgessNetwork(ConvNetwork):
    """The network of β-VAE with controlled capacity (Burgess et al., 2018, App. A.2): 4 × 32 channels, 256, 256."""

    def __init__(self) -> None:
        super().__init__(channels=(32, 32, 32, 32), hidden=(256, 256))


class JointVAENetwork(ConvNetwork):
    """JointVAE's network (Dupont, 2018, App. B), also β-VAE's and DIP-VAE's for Chairs and CelebA.

    Images below 64 pixels lose the last convolution of the encoder and the first of the decoder.
    """

    def __init__(self) -> None:
        super().__init__(channels=(32, 32, 64, 64))

    def channels_for(self, image_shape: Shape) -> tuple[int, ...]:
        """Channels of App. B's table, the last one dropped for small images."""
        return self.channels if min(image_shape[1:]) >= 64 else self.channels[:-1]


class PartedVAENetwork(ConvNetwork):
    """PartedVAE's networks (Hajimiri et al., 2021, Tables 3 to 5): 32-pixel, 64-pixel and 218×178 images.

    Leaky ReLU (0.1) on the last convolution and on h, as in the released code. Departs from the paper: Table 5 decodes
    218×178 images from 1600 = 64·5·5 units, which cannot give 218 rows; here the decoder starts at the size at which
    the encoder ends (64·6·5).
    """

    def __init__(self) -> None:
        super().__init__(leak=0.1, odd_sizes=True)

    def channels_for(self, image_shape: Shape) -> tuple[int, ...]:
        """Table 3 below 64 pixels, Table 4 at 64 to 127, Table 5 from 128 on."""
        side = min(image_shape[1:])
        if side < 64:
            return (32, 64, 64)
        return (32, 32, 64, 64) if side < 128 else (32, 32, 64, 64, 64)

    def decoder_channels_for(self, image_shape: Shape) -> tuple[int, ...]:
        """The encoder's backwards, but for Table 3, which is not symmetric."""
        return (32, 32) if min(image_shape[1:]) < 64 else super().decoder_channels_for(image_shape)


class LaRVAENetwork(ConvNetwork):
    """LaRVAE's network (Nie et al., 2020, Table D.2): instance norm, encoder kernels 4, 4, 2, 2."""

    def __init__(self) -> None:
        super().__init__(channels=(32, 32, 64, 64), kernels=(4, 4, 2, 2), instance_norm=True)


class DenseNetwork(Network):
    """Fully connected network with Glorot-uniform weights; 1200-1200 with ReLU is WeLa-VAE's (Margonis et al., 2020).

    Args:
        encoder_widths: Hidden widths of the encoder.
        decoder_widths: Hidden widths of the decoder.
        decoder_activation: "tanh" with three decoder layers is β-VAE's network for 2D Shapes, which DIP-VAE uses
            (Higgins et al., 2017, Table 1).
    """

    def __init__(
        self,
        encoder_widths: Sequence[int] = (1200, 1200),
        decoder_widths: Sequence[int] = (1200, 1200),
        decoder_activation: Literal["relu", "tanh"] = "relu",
    ) -> None:
        self.encoder_widths, self.decoder_widths = tuple(encoder_widths), tuple(decoder_widths)
        _check_widths(encoder_widths=self.encoder_widths, decoder_widths=self.decoder_widths)
        self.decoder_activation = decoder_activation
        self.features = self.encoder_widths[-1]

    def encoder(self, image_shape: Shape, labels: Sequence[int] = ()) -> nn.Module:
        """Flattened image, with labels beside it, through dense layers."""
        dense = dense_layers((prod(image_shape) + sum(labels), *self.encoder_widths), nn.ReLU)
        return joined([nn.Flatten()], dense, labels)

    def decoder(self, image_shape: Shape, latent_size: int, labels: Sequence[int] = ()) -> nn.Module:
        """Dense layers up to one logit a pixel."""
        activation = nn.Tanh if self.decoder_activation == "tanh" else nn.ReLU
        hidden = dense_layers((latent_size, *self.decoder_widths), activation)
        width = self.decoder_widths[-1]
        image = dense_layers((width, prod(image_shape)), nn.Identity)
        heads = [nn.Sequential(*dense_layers((width, classes), nn.Identity)) for classes in labels]
        return forked(hidden, [*image, nn.Unflatten(1, image_shape)], heads)

    def initialise(self, heads: nn.Module) -> None:
        """Glorot-uniform weights for the latent heads as well."""
        for layer in heads.modules():
            if isinstance(layer, nn.Linear):
                glorot(layer)


def _check_widths(**widths: tuple[int, ...]) -> None:
    for name, values in widths.items():
        if not values or min(values) < 1:
            raise ValueError(f"{name} must name at least one layer, each 1 wide or more, not {list(values)}")
