"""Encoders and decoders: one class for each architecture table in the papers."""

from collections.abc import Sequence
from math import prod
from typing import Literal

from torch import nn

from vaezoo.nn.convolutional import ConvNetwork, Network, Shape
from vaezoo.nn.layers import check_widths, dense_layers, forked, glorot, joined

__all__ = [
    "BurgessNetwork",
    "ConvNetwork",
    "DenseNetwork",
    "JointVAENetwork",
    "LaRVAENetwork",
    "LocatelloNetwork",
    "Network",
    "PartedVAENetwork",
    "Shape",
]

Activation = Literal["relu", "tanh"]
ACTIVATIONS: dict[Activation, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh}


class BurgessNetwork(ConvNetwork):
    """The network of β-VAE with controlled capacity (Burgess et al., 2018, App. A.2): 4 × 32 channels, 256, 256."""

    usual = (32, 32, 32, 32)

    def __init__(self) -> None:
        super().__init__(hidden=(256, 256))


class JointVAENetwork(ConvNetwork):
    """JointVAE's network (Dupont, 2018, App. B), also β-VAE's and DIP-VAE's for Chairs and CelebA.

    Images below 64 pixels need one convolution less. The released code and weights drop the encoder's second one (32,
    64, 64); the appendix drops "the last" (32, 32, 64).

    Args:
        variant: "released" or "paper", for images below 64 pixels.
    """

    def __init__(self, variant: Literal["released", "paper"] = "released") -> None:
        if variant not in ("released", "paper"):
            raise ValueError(f"variant must be 'released' or 'paper', not {variant!r}")
        super().__init__()
        self.variant = variant

    def channels_for(self, image_shape: Shape) -> tuple[int, ...]:
        """Channels of the table in App. B; small images drop one convolution."""
        if min(image_shape[1:]) >= 64:
            return super().channels_for(image_shape)
        return (32, 64, 64) if self.variant == "released" else (32, 32, 64)

    def decoder_channels_for(self, image_shape: Shape) -> tuple[int, ...]:
        """Channels of App. B; small images drop the first convolution."""
        return super().decoder_channels_for(image_shape) if min(image_shape[1:]) >= 64 else (32, 32)


class PartedVAENetwork(ConvNetwork):
    """PartedVAE's networks (Hajimiri et al., 2021, Tables 3 to 5): 32-pixel, 64-pixel and 218×178 images.

    Leaky ReLU (0.1) on the last convolution and on h, as in the released code. At 218×178 the padding also follows that
    code, so the encoder ends and the decoder starts at Table 5's 1600 = 64·5·5 units.
    """

    celeba_paddings = ((0, 2), (1, 2), (0, 2), (0, 1), (0, 0))

    def __init__(self) -> None:
        super().__init__(leak=0.1)

    def channels_for(self, image_shape: Shape) -> tuple[int, ...]:
        """Table 3 below 64 pixels, Table 4 at 64 to 127, Table 5 from 128 on, and one more from 256 on."""
        return (32, 64, 64) if min(image_shape[1:]) < 64 else super().channels_for(image_shape)

    def decoder_channels_for(self, image_shape: Shape) -> tuple[int, ...]:
        """The encoder's, reversed, except for Table 3, which is not symmetric."""
        return (32, 32) if min(image_shape[1:]) < 64 else super().decoder_channels_for(image_shape)

    def paddings_for(self, image_shape: Shape) -> tuple[tuple[int, int], ...] | None:
        """The released code's padding for CelebA's original size."""
        return self.celeba_paddings if image_shape[1:] == (218, 178) else None


class LaRVAENetwork(ConvNetwork):
    """LaRVAE's network (Nie et al., 2020, Table D.2): instance norm, encoder kernels 4, 4, 2, 2."""

    def __init__(self) -> None:
        super().__init__(kernels=(4, 4, 2, 2), instance_norm=True)


class DenseNetwork(Network):
    """Fully connected network with Glorot-uniform weights.

    1200-1200 in encoder and decoder is WeLa-VAE's network (Margonis et al., 2020). The paper names no activation; the
    scripts behind its table use tanh in both halves. ReLU in the encoder and tanh in three decoder layers is β-VAE's
    network for 2D Shapes, which DIP-VAE uses (Higgins et al., 2017, Table 1).

    Args:
        encoder_widths: Hidden widths of the encoder.
        decoder_widths: Hidden widths of the decoder.
        encoder_activation: Activation after each hidden layer of the encoder.
        decoder_activation: Activation after each hidden layer of the decoder.
    """

    def __init__(
        self,
        encoder_widths: Sequence[int] = (1200, 1200),
        decoder_widths: Sequence[int] = (1200, 1200),
        decoder_activation: Activation = "relu",
        encoder_activation: Activation = "relu",
    ) -> None:
        self.encoder_widths, self.decoder_widths = tuple(encoder_widths), tuple(decoder_widths)
        check_widths(encoder_widths=self.encoder_widths, decoder_widths=self.decoder_widths)
        self.encoder_activation = _activation(encoder_activation)
        self.decoder_activation = _activation(decoder_activation)
        self.features = self.encoder_widths[-1]

    def encoder(self, image_shape: Shape, labels: Sequence[int] = ()) -> nn.Module:
        """Dense layers over the flattened image, with labels appended."""
        dense = dense_layers((prod(image_shape) + sum(labels), *self.encoder_widths), self.encoder_activation)
        return joined([nn.Flatten()], dense, labels)

    def decoder(self, image_shape: Shape, latent_size: int, labels: Sequence[int] = ()) -> nn.Module:
        """Dense layers up to one logit per pixel."""
        hidden = dense_layers((latent_size, *self.decoder_widths), self.decoder_activation)
        width = self.decoder_widths[-1]
        image = dense_layers((width, prod(image_shape)), nn.Identity)
        heads = [nn.Sequential(*dense_layers((width, classes), nn.Identity)) for classes in labels]
        return forked(hidden, [*image, nn.Unflatten(1, image_shape)], heads)

    def built(self, image_shape: Shape) -> str:
        """Widths of both halves."""
        encoder, decoder = (", ".join(map(str, widths)) for widths in (self.encoder_widths, self.decoder_widths))
        return f"{super().built(image_shape)}: dense {encoder} down, {decoder} up"

    def initialise(self, heads: nn.Module) -> None:
        """Give the latent heads Glorot-uniform weights too."""
        for layer in heads.modules():
            if isinstance(layer, nn.Linear):
                glorot(layer)


class LocatelloNetwork(ConvNetwork):
    """disentanglement_lib's network (Locatello et al., 2019): 32, 32, 64, 64 channels, encoder kernels 4, 4, 2, 2."""

    def __init__(self) -> None:
        super().__init__(kernels=(4, 4, 2, 2))


def _activation(name: Activation) -> type[nn.Module]:
    if name not in ACTIVATIONS:
        raise ValueError(f"an activation must be one of {', '.join(ACTIVATIONS)}, not {name!r}")
    return ACTIVATIONS[name]
