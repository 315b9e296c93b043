"""JointVAE: continuous and discrete factors together."""

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from typing_extensions import Self, Unpack

from vaezoo.models.base import VAE, VAEOptions
from vaezoo.models.joint_vae_released import copy_released, read_released, released_arguments
from vaezoo.nn.latents import ConcreteLatent, GaussianLatent, LatentGroup
from vaezoo.nn.networks import JointVAENetwork, Shape
from vaezoo.regularizers import Capacity, Regularizer
from vaezoo.types import Batch, Forward, Term


class JointVAE(VAE):
    """JointVAE (Dupont, 2018, Eq. 7): separate capacities for continuous latents "z" and discrete latents "c".

    Departs from the paper, as the released code does: the loss is divided by the number of pixels, and the
    reconstruction is averaged over channels. `scaling="paper"` sums over channels and pixels and does not divide.

    Args:
        image_shape: Channels, height and width.
        continuous: Number of continuous dimensions; may be 0.
        discrete: Number of classes of each discrete variable; may be empty.
        temperature: Temperature of the Gumbel-softmax.
        gamma_z: Weight of the gap between the continuous KL and its capacity.
        gamma_c: Weight of the gap between the discrete KL and its capacity.
        max_nats_z: Continuous capacity at the end of the ramp.
        max_nats_c: Discrete capacity at the end of the ramp, capped at Σ log K.
        steps: Training batches over which the capacities rise.
        scaling: "released" or "paper".
        auxiliary: Number of classes of each auxiliary discrete variable "aux" (not in the paper). The decoder does not
            read them and no capacity limits them. They give `ViewAgreement` finer classes to learn features from
            (over-clustering; Ji et al., 2019, Sec. 3.2).
        regularizers: Extra terms by name. "capacity_z" and "capacity_c" replace the built-in ones.
        options: `network` (`JointVAENetwork` by default), `likelihood`, `likelihood_variance`, `lr` and `optimizer`, as
            in `VAE`.
    """

    paper = "Dupont, 2018"

    def __init__(
        self,
        image_shape: Shape,
        continuous: int = 10,
        discrete: Sequence[int] = (10,),
        temperature: float = 0.67,
        gamma_z: float = 30.0,
        gamma_c: float = 30.0,
        max_nats_z: float = 5.0,
        max_nats_c: float = 5.0,
        steps: int = 25_000,
        scaling: Literal["released", "paper"] = "released",
        auxiliary: Sequence[int] = (),
        regularizers: Mapping[str, Regularizer] | None = None,
        **options: Unpack[VAEOptions],
    ) -> None:
        if scaling not in ("released", "paper"):
            raise ValueError(f"scaling must be 'released' or 'paper', not {scaling!r}")
        pixels = prod(image_shape[1:]) if scaling == "released" else 1
        latents: dict[str, LatentGroup] = {}
        terms: dict[str, Regularizer] = {}
        if continuous:
            latents["z"] = GaussianLatent(continuous)
            terms["capacity_z"] = Capacity("z", gamma_z / pixels, max_nats_z, steps)
        if discrete:
            latents["c"] = ConcreteLatent(list(discrete), temperature)
            terms["capacity_c"] = Capacity("c", gamma_c / pixels, max_nats_c, steps)
        if auxiliary:
            latents["aux"] = ConcreteLatent(list(auxiliary), temperature, decoded=False)
        if options.get("network") is None:
            options["network"] = JointVAENetwork()
        super().__init__(image_shape, latents, {**terms, **(regularizers or {})}, **options)
        # Released: element-mean × H·W / (H·W), that is 1 / (C·H·W) of the sum.
        self.reconstruction_scale = 1 / prod(self.image_shape) if scaling == "released" else 1.0

    @classmethod
    def from_released(cls, path: str | Path, specs: str | Path) -> Self:
        """Load the author's released weights; the capacities are at the end of their ramp.

        Args:
            path: A `model.pt` of the released code. Nothing in it is executed.
            specs: The matching `specs.json`.
        """
        weights = read_released(Path(path))
        arguments = released_arguments(Path(specs), weights)
        model = cls(network=JointVAENetwork("released"), **arguments)
        try:
            copy_released(weights, model)
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{path} does not fit the network that {specs} describes ({error})") from error
        model.step.fill_(arguments["steps"])
        return model.eval()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Select the paper's small-image network for 0.1.0 checkpoints, which hold it without naming it."""
        super().on_load_checkpoint(checkpoint)
        found, own = checkpoint["state_dict"].get("encoder.2.weight"), self.encoder.state_dict().get("2.weight")
        if self.hparams.get("network") is None and found is not None and own is not None and found.shape != own.shape:
            network = JointVAENetwork("paper")
            self.encoder = network.encoder(self.image_shape).to(self.device)
            self.hparams["network"] = network.spec

    def reconstruction_term(self, out: Forward, batch: Batch) -> Term:
        """Scaled −log p(x|z). The unscaled nats are logged."""
        nats = super().reconstruction_term(out, batch).loss
        return Term(self.reconstruction_scale * nats, {"nats": nats})

    @torch.no_grad()
    def classify(self, x: Tensor) -> Tensor:
        """Most likely class of each discrete variable, (B, variables)."""
        sizes = self._discrete().sizes
        return torch.stack([p.argmax(1) for p in self.encode(x)["c"].code().split(list(sizes), 1)], dim=1)

    @torch.no_grad()
    def sample_class(self, n: int, k: int, variable: int = 0) -> Tensor:
        """Images of class k of one discrete variable; the rest is sampled from the prior (Fig. 4), (n, C, H, W)."""
        group, sample = self._discrete(), self.draw(n)
        return self.decode(sample | {"c": group.choose(sample["c"], variable, k)}).sigmoid()

    def _discrete(self) -> ConcreteLatent:
        group = self.latents.get("c")
        if not isinstance(group, ConcreteLatent):
            raise ValueError("this JointVAE has no discrete latents; give it some with `discrete`")
        return group
