"""Add a regularizer to any model from the Trainer."""

from lightning.pytorch import Callback, LightningModule, Trainer

from vaezoo.models.base import VAE
from vaezoo.regularizers import Regularizer


class AddRegularizer(Callback):
    """Adds a term to the model before training starts.

    The term becomes part of the model, not of the Trainer. It takes part in the backward pass, gradient accumulation
    and loss scaling; its parameters are optimised and saved; the checkpoint loads without this callback.

    Args:
        name: Name of the term in logs and in the model's `regularizers`. Must be new.
        regularizer: The term.
    """

    def __init__(self, name: str, regularizer: Regularizer) -> None:
        self.name, self.regularizer = name, regularizer

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Add the term, once."""
        if not isinstance(pl_module, VAE):
            raise TypeError(f"AddRegularizer needs a vaezoo VAE, not a {type(pl_module).__name__}")
        present = dict(pl_module.regularizers.items()).get(self.name)
        if isinstance(present, Regularizer) and present.spec == self.regularizer.spec:
            return
        if present is not None:
            raise ValueError(f"the model has a term called {self.name!r} already; give AddRegularizer another name")
        pl_module.add_regularizer(self.name, self.regularizer)
