"""Pictures of classes and of the latents that depend on them."""

from collections.abc import Mapping

import torch
from lightning.pytorch import Trainer

from vaezoo.models import JointVAE, PartedVAE
from vaezoo.models.base import VAE
from vaezoo.nn.latents import ConcreteLatent
from vaezoo.pictures.callback import Pictures, caption
from vaezoo.pictures.grids import grid
from vaezoo.pictures.mixtures import prior_picture
from vaezoo.pictures.picture import Picture
from vaezoo.pictures.subjects import Start
from vaezoo.types import Batch


class SaveClassSamples(Pictures):
    """Draws samples of each class, one class per row (Dupont, 2018, Fig. 4; Hajimiri et al., 2021, Fig. 4).

    Args:
        samples: Samples per class.
    """

    def __init__(self, samples: int = 10) -> None:
        super().__init__(images=1)
        self.samples = samples

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> Mapping[str, Picture]:
        """One picture per discrete variable; none for models without classes."""
        return class_samples(model, self.samples, caption(trainer, model))


class SavePriors(Pictures):
    """Draws the learnt mixture p(u|c) with images decoded along it (Hajimiri et al., 2021, Fig. 7 and 10).

    Args:
        steps: Images below each curve.
        max_units: Largest number of dimensions of u to draw.
    """

    def __init__(self, steps: int = 12, max_units: int = 4) -> None:
        super().__init__(images=1)
        self.steps, self.max_units = steps, max_units

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> Mapping[str, Picture]:
        """One picture per dimension of u; none for models without a mixture."""
        if not isinstance(model, PartedVAE):
            return {}
        start = Start("image", {name: q.mode() for name, q in model.encode(batch.x).items()})
        return {
            f"prior_u{unit}": prior_picture({"": model}, [start], unit, self.steps, caption(trainer, model))
            for unit in range(min(model.latents["u"].units, self.max_units))
        }


class SaveTransfers(Pictures):
    """Draws images with their row's class and all else from their column (Hajimiri et al., 2021, Fig. 5).

    Args:
        images: Number of rows and columns.
    """

    def draw(self, trainer: Trainer, model: VAE, batch: Batch) -> Mapping[str, Picture]:
        """One picture; none for models without class-related latents."""
        return transfers(model, batch, caption(trainer, model))


def class_samples(model: VAE, samples: int, title: str) -> dict[str, Picture]:
    """Samples of each class, one picture per discrete variable; none for models without classes."""
    classes = model.latents.get("c")
    if not isinstance(model, (JointVAE, PartedVAE)) or not isinstance(classes, ConcreteLatent):
        return {}
    return {
        f"samples_c{v}": grid(
            [model.sample_class(samples, k, v) for k in range(size)],
            [f"class {k}" for k in range(size)],
            title=f"{title} · samples by class of c{v}",
        )
        for v, size in enumerate(classes.sizes)
    }


def transfers(model: VAE, batch: Batch, title: str) -> dict[str, Picture]:
    """The class of each row's image with all else from each column's; none for models without such latents."""
    if not isinstance(model, PartedVAE):
        return {}
    made = model.transfer(batch.x, batch.x)
    blank = torch.ones_like(batch.x[:1])
    rows = [torch.cat([blank, batch.x]), *(torch.cat([x[None], row]) for x, row in zip(batch.x, made, strict=True))]
    names = ["attributes of", *["class of"] * len(batch.x)]
    return {"transfers": grid(rows, names, title=f"{title} · attribute transfer")}
