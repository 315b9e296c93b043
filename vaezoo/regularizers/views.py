"""Classes that stay the same under small image transforms."""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from vaezoo.distributed import gather
from vaezoo.functional import full_precision, mutual_information
from vaezoo.regularizers.base import Regularizer, concrete
from vaezoo.types import Batch, Forward, Posterior, Term


class ViewAgreement(Regularizer):
    """−weight · Σ I(c(x); c(T x)): classes tell images apart, and a random affine map T does not change them.

    Invariant information clustering (Ji et al., 2019, Eq. 3) as a loss term. It reads no labels, but assumes that T
    keeps the class. T rotates, shears, scales and shifts each image by amounts drawn uniformly within the given bounds.
    The term is 0 in evaluation.

    Args:
        latents: Discrete latent groups; the sum runs over all their variables.
        weight: Weight, on the scale of the model's loss.
        degrees: Largest rotation, in either direction.
        slant: Largest shear, in either direction: the shift of a row per unit of distance from the centre.
        scale: Largest relative change of height and of width, drawn independently.
        shift: Largest shift along each axis, as a fraction of the image side.
    """

    def __init__(
        self,
        latents: Sequence[str] = ("c",),
        weight: float = 1.0,
        degrees: float = 15.0,
        slant: float = 0.3,
        scale: float = 0.2,
        shift: float = 0.1,
    ) -> None:
        super().__init__()
        if not 0 <= scale < 1:
            raise ValueError(f"scale must be at least 0 and below 1, not {scale}")
        self.latents, self.weight = tuple(latents), weight
        self.degrees, self.slant, self.scale, self.shift = degrees, slant, scale, shift

    def forward(self, out: Forward, batch: Batch, step: Tensor) -> Term:
        """Mutual information of the classes of both views over the global batch."""
        if not self.training:
            return Term(batch.x.new_zeros(()), {})
        x = self.moved(full_precision(batch.x)).to(batch.x.dtype)
        moved = out.encode(x, batch.y)
        nats = {name: self._agreement(out.posterior, moved, name) for name in self.latents}
        return Term(-self.weight * torch.stack(list(nats.values())).sum(), nats)

    @staticmethod
    def _agreement(posterior: Mapping[str, Posterior], moved: Mapping[str, Posterior], latent: str) -> Tensor:
        pairs = zip(concrete(posterior, latent).probs, concrete(moved, latent).probs, strict=True)
        # Joint frequencies of classes are not linear in the batch.
        return torch.stack([mutual_information(gather(p), gather(p_moved)) for p, p_moved in pairs]).sum()

    def moved(self, x: Tensor) -> Tensor:
        """Each image under its own affine map, (B, C, H, W); pixels from outside repeat the border."""
        noise = 2 * torch.rand(6, len(x), device=x.device, dtype=x.dtype) - 1  # uniform in [−1, 1]
        angle = torch.deg2rad(self.degrees * noise[0])
        slant, (height, width) = self.slant * noise[1], 1 + self.scale * noise[2:4]
        cos, sin = angle.cos(), angle.sin()
        rows = [
            torch.stack([width * cos, width * (slant * cos - sin), 2 * self.shift * noise[4]], 1),
            torch.stack([height * sin, height * (slant * sin + cos), 2 * self.shift * noise[5]], 1),
        ]
        grid = F.affine_grid(torch.stack(rows, 1), list(x.shape), align_corners=False)
        return F.grid_sample(x, grid, padding_mode="border", align_corners=False)
