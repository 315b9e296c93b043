"""Loading models from checkpoints without naming their class."""

from pathlib import Path
from typing import Any

from vaezoo.models import VAE
from vaezoo.specs import find
from vaezoo.storage import read


def load(path: str | Path, map_location: Any = "cpu") -> VAE:
    """Load the model that a checkpoint holds, whatever its class.

    Only tensors and plain data are read; nothing in the file is executed, and a damaged one is an error. A model
    defined elsewhere must be imported first.

    Args:
        path: A checkpoint that Lightning wrote.
        map_location: Device to load to, as in `torch.load`.
    """
    path = Path(path)
    checkpoint = read(path, mmap=True)
    if "model_class" not in checkpoint:
        raise ValueError(f"{path} was not written by a vaezoo model; use its class's load_from_checkpoint")
    model: VAE = find(VAE, checkpoint["model_class"]).load_from_checkpoint(path, map_location, weights_only=True)
    return model.eval()
