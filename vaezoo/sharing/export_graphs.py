"""The two halves of a model as they are exported: tensors in, named tensors out, bytes to [0, 1] inside."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from vaezoo.metrics.protocols import DecodesLabels
from vaezoo.models import VAE, LaRVAE
from vaezoo.types import from_bytes

IMAGES, LABELS, CODES, LATENTS = "images", "labels", "codes", "latents"
UNKNOWN = -1
"""Class index of a label that is not known."""


class Graph(nn.Module):
    """One half of a model.

    Args:
        model: The model, in evaluation, in float32 on the host.
    """

    name: ClassVar[str]

    def __init__(self, model: VAE) -> None:
        super().__init__()
        self.model = model

    @property
    def label_sizes(self) -> tuple[int, ...]:
        """Number of classes of each label that the model decodes; empty for models that decode none."""
        return tuple(self.model.label_sizes) if isinstance(self.model, DecodesLabels) else ()

    def examples(self, n: int) -> dict[str, Tensor]:
        """Inputs of a batch of n by name, the same each time."""
        raise NotImplementedError

    def expected(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """What the model's own methods make of inputs, by the names of outputs."""
        raise NotImplementedError


class EncoderGraph(Graph):
    """From bytes (B, C, H, W) to `codes`, what `represent` gives, and `latents`, what the decoder reads.

    The two differ in discrete groups: `codes` holds probabilities of classes, `latents` the most likely one, one-hot.
    Groups that are not decoded, such as PartedVAE's "c", are outputs under their own names. LaRVAE has one more output,
    the `labels` that it infers. A WeLaVAE whose encoder reads labels takes class indices (B, labels), −1 if unknown.
    """

    name = "encoder"

    def forward(self, images: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        """Codes of images, and what else the encoder tells."""
        x = from_bytes(images)
        posterior = self.model.encode(x, self.known_labels(labels, x))
        code = {name: q.code() for name, q in posterior.items()}
        outputs = {
            CODES: self.model.beside(code),
            LATENTS: self.model.beside({k: q.mode() for k, q in posterior.items()}),
        }
        outputs |= {name: code[name] for name in posterior if name not in self.model.decoded}
        if isinstance(self.model, LaRVAE):
            outputs[LABELS] = self.model.labels_from(code["y"])
        return outputs

    @property
    def reads_labels(self) -> bool:
        """Whether labels are an input."""
        return bool(self.label_sizes) and bool(getattr(self.model, "labels_in_encoder", True))

    def examples(self, n: int) -> dict[str, Tensor]:
        """Images from the model's prior and noise by turns; labels, some of them unknown."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(n)
            drawn = self.model.sample(n).mul(255).round().byte()
            drawn[1::2] = torch.randint(0, 256, drawn[1::2].shape, dtype=torch.uint8)
            labels = [torch.randint(UNKNOWN, size, (n,)) for size in self.label_sizes]
        return {IMAGES: drawn} | ({LABELS: torch.stack(labels, dim=1)} if self.reads_labels else {})

    @torch.no_grad()
    def expected(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """`represent` for the codes, `infer_labels` for the labels."""
        x = from_bytes(inputs[IMAGES])
        outputs = self.forward(**inputs) | {CODES: self.model.represent(x, self.known_labels(inputs.get(LABELS), x))}
        return outputs | ({LABELS: self.model.infer_labels(x)} if isinstance(self.model, LaRVAE) else {})

    def known_labels(self, labels: Tensor | None, x: Tensor) -> Tensor | None:
        """Labels as the model reads them: NaN where one is not known."""
        return None if labels is None else torch.where(labels < 0, torch.nan, labels.to(x))


class DecoderGraph(Graph):
    """From `latents` (B, D) to `images` in [0, 1]; WeLaVAE's give the probabilities of its `labels` as well."""

    name = "decoder"

    def forward(self, latents: Tensor) -> dict[str, Tensor]:
        """Images of latents."""
        sizes = [group.size for group in self.model.decoded.values()]
        sample = dict(zip(self.model.decoded, latents.split(sizes, dim=1), strict=True))
        image, labels = self.model.decode_with_labels(sample)
        outputs = {IMAGES: image.sigmoid()}
        return outputs | ({LABELS: torch.cat([logits.softmax(1) for logits in labels], dim=1)} if labels else {})

    @torch.no_grad()
    def examples(self, n: int) -> dict[str, Tensor]:
        """What the encoder makes of its examples."""
        return {LATENTS: self._encoder()(**self._encoder().examples(n))[LATENTS]}

    @torch.no_grad()
    def expected(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """`reconstruct` for the images."""
        given = self._encoder().examples(len(inputs[LATENTS]))
        x = from_bytes(given[IMAGES])
        return self.forward(**inputs) | {
            IMAGES: self.model.reconstruct(x, self._encoder().known_labels(given.get(LABELS), x))
        }

    def _encoder(self) -> EncoderGraph:
        return EncoderGraph(self.model)
